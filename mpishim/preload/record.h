/*
 * What the files of recording have in common. Only the recorded thread uses any of
 * it, but for communicators, which other threads make and free too.
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
struct pw_record *pw_record_next(void); /* where the next record is to be written; NULL: recording has ended */
void pw_record_push(void);		/* it is written */
void pw_record_emit(const struct pw_record *r);
void pw_record_clock_start(void);
void pw_record_now(uint64_t *ns, uint64_t *cpu_ns); /* since then */

/* record_comm.c: communicators, and windows, which have members as well */
struct pw_comm {
	pw_word handle;
	uint64_t global_id;	 /* the same on all members */
	int32_t id;	 /* in the trace; -1: not there yet */
	int is_inter;
	int members, peers;
	int32_t *world;	 /* world ranks of the members, of an intercommunicator of both groups; or PW_ELSEWHERE */
	int32_t *peer;	 /* of those that a rank in a call means */
	int references;
	struct pw_comm *next;
};
enum pw_comm_origin { PW_BY_PARENT, PW_BY_GROUP, PW_NONBLOCKING, PW_WINDOW, PW_UNSEEN };

struct pw_comm *pw_comm_find(pw_word handle, int is_window); /* which MPI has accepted; a reference, or NULL */
struct pw_comm *pw_comm_keep(struct pw_comm *c);	     /* another one */
void pw_comm_drop(struct pw_comm *c);
uint64_t pw_comm_global_id(pw_word handle);
void pw_comm_created(pw_word handle, uint64_t parent, unsigned how); /* parent: its name, 0 for none */
int32_t pw_comm_id(struct pw_comm *c);			     /* in the trace; -1: it has no room for another */
int32_t pw_world_rank(const struct pw_comm *c, int64_t peer); /* trace.Record.Peer of a rank */

/*
 * record_request.c: what goes on between two calls: requests, messages that were
 * probed for, accesses to windows. Several may have one handle: MPICH gives all
 * sends that have ended at once the same. Then the oldest goes first.
 */
struct pw_pending {
	uint64_t key;
	uint32_t number;       /* of the request in the trace; 0: of a persistent one what it does when it is started */
	uint8_t is_any;	       /* the source or tag of what it receives isn't known yet: */
	int32_t tag;	       /* the one that it was given */
	uint8_t is_cancelled;  /* it may be */
	uint8_t is_fortran;    /* so is made */
	struct pw_comm *comm;  /* a reference, or NULL */
	struct pw_record record; /* of a persistent request, or a message */
	const void *made;      /* where MPI puts the communicator that it makes */
	uint64_t parent;       /* name, of that */
	struct pw_pending *next;
};
enum pw_table { PW_REQUESTS, PW_PERSISTENTS, PW_MESSAGES, PW_RMA, PW_TABLES };
#define PW_RMA_KEY(window) ((window)->global_id)

uint32_t pw_pending_number(void);					  /* of another request */
struct pw_pending *pw_pending_new(struct pw_comm *c);			  /* NULL: no memory */
void pw_pending_put(enum pw_table t, uint64_t key, struct pw_pending *p); /* behind others of the key */
void pw_pending_put_back(enum pw_table t, struct pw_pending *p);	  /* before them */
struct pw_pending *pw_pending_take(enum pw_table t, uint64_t key);	  /* or NULL */
struct pw_pending *pw_pending_see(enum pw_table t, uint64_t key);	  /* it stays there */
void pw_pending_end(struct pw_pending *p);

/* record_wait.c */
void pw_record_take(struct pw_call *c);	    /* what a call may end, before it */
void pw_record_put_back(struct pw_call *c); /* what it has not ended */
int pw_record_ended(struct pw_call *c, struct pw_record *r); /* 1: that was all of the call */

/* record_status.c: what a status says; its layout is the library's */
int pw_status_is_ignored(const struct pw_call *c);
int pw_status_provide(struct pw_call *c, int64_t n); /* one of ours instead of none; 0: no memory */
const int *pw_status_at(const struct pw_call *c, int64_t i);
int pw_status_source(const int *status);
int pw_status_tag(const int *status);
int pw_status_is_cancelled(const int *status);

#endif
