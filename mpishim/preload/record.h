/*
 * Declarations that the files of recording share. Only the recorded thread uses them, except
 * communicators, which other threads create and free as well.
 */
#ifndef PINWHEEL_RECORD_H
#define PINWHEEL_RECORD_H

#include "recording.h"

/* trace.Record.Peer. */
#define PW_ANY_SOURCE (-1)
#define PW_NO_PEER (-2)
#define PW_ELSEWHERE (-3)
#define PW_ANY_TAG (-1)

/* record_ring.c: the ring to the Go side, and the time since the beginning */
struct pw_record *pw_record_next(void); /* the slot for the next record; NULL if recording has ended */
void pw_record_push(void);		/* the slot is filled in */
void pw_record_emit(const struct pw_record *r);
uint64_t pw_record_changes(void); /* of mappings so far, as far as they are noticed */
void pw_record_clock_start(void);
void pw_record_now(uint64_t *ns, uint64_t *cpu_ns); /* since then */

/* record_comm.c: communicators, and windows, which have members as well */
struct pw_comm {
	pw_word handle;
	uint64_t global_id;	 /* the same on all members, as the trace has it */
	int32_t id;	 /* in the trace; -1 if it is not there yet */
	int is_inter;
	int members, peers;
	int32_t *world;	 /* world ranks of the members, or PW_ELSEWHERE; of both groups of an intercommunicator */
	int32_t *peer;	 /* world ranks of the group that a rank in a call refers to */
	int references;
	struct pw_comm *next;
};
enum pw_comm_origin { PW_BY_PARENT, PW_BY_GROUP, PW_NONBLOCKING, PW_WINDOW, PW_UNSEEN };

/* a handle that MPI has accepted; returns a reference or NULL */
struct pw_comm *pw_comm_find(pw_word handle, int is_window);
struct pw_comm *pw_comm_keep(struct pw_comm *c);	     /* another reference */
void pw_comm_drop(struct pw_comm *c);
uint64_t pw_comm_global_id(pw_word handle);
void pw_comm_created(pw_word handle, uint64_t parent, unsigned how); /* parent is a global ID, or 0 for none */
int32_t pw_comm_id(struct pw_comm *c);			     /* defines it in the trace if need be; -1 if the trace is full */
int32_t pw_world_rank(const struct pw_comm *c, int64_t peer); /* trace.Record.Peer of a rank */

/*
 * record_request.c: operations that outlast a call: requests, messages that were probed
 * for, and one-sided operations. Several may have one handle, because MPICH gives
 * the same one to all sends that complete at once. Then the oldest goes first.
 */
struct pw_pending {
	uint64_t key;
	/* of the request in the trace; 0 for a persistent request, whose record says what a start does */
	uint32_t number;
	uint8_t is_any;	       /* it receives from any source or with any tag */
	int32_t tag;	       /* the tag that the receive was given */
	uint8_t is_cancelled;  /* MPI_Cancel was called for it */
	uint8_t is_fortran;    /* made points to a Fortran handle */
	struct pw_comm *comm;  /* a reference, or NULL */
	struct pw_record record; /* of a persistent request, or a message */
	const void *made;      /* where MPI puts the communicator that the operation creates */
	uint64_t parent;       /* global ID of the parent of that communicator */
	struct pw_pending *next;
};
enum pw_table { PW_REQUESTS, PW_PERSISTENTS, PW_MESSAGES, PW_RMA, PW_TABLES };
#define PW_RMA_KEY(window) ((window)->global_id)

uint32_t pw_pending_number(void);					  /* of the next request */
struct pw_pending *pw_pending_new(struct pw_comm *c);			  /* NULL if there is no memory */
void pw_pending_put(enum pw_table t, uint64_t key, struct pw_pending *p); /* after others with the key */
void pw_pending_put_back(enum pw_table t, struct pw_pending *p);	  /* before others with its key */
struct pw_pending *pw_pending_take(enum pw_table t, uint64_t key);	  /* or NULL */
struct pw_pending *pw_pending_see(enum pw_table t, uint64_t key);	  /* as above, without removing it */
void pw_pending_end(struct pw_pending *p);

/* record_wait.c */
void pw_record_take(struct pw_call *c);	    /* before a call: takes the requests that it may complete */
void pw_record_put_back(struct pw_call *c); /* after a call: puts back those that it has not completed */
/* records the completions; 1 if the call does nothing else */
int pw_record_ended(struct pw_call *c, struct pw_record *r);

/* record_status.c: reads a status, whose layout depends on the MPI library */
int pw_status_is_ignored(const struct pw_call *c);
/* passes ours in place of MPI_STATUS_IGNORE; 0 if there is no memory */
int pw_status_provide(struct pw_call *c, int64_t n);
const int *pw_status_at(const struct pw_call *c, int64_t i);
int pw_status_source(const int *status);
int pw_status_tag(const int *status);
int pw_status_is_cancelled(const int *status);

#endif
