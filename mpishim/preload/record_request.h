/*
 * Recording: operations that outlast a call: requests, messages that were probed
 * for, and one-sided operations. Several may have one handle, because MPICH gives
 * the same one to all sends that complete at once. Then the oldest goes first. Only the
 * recorded thread uses them.
 */
#ifndef PINWHEEL_RECORD_REQUEST_H
#define PINWHEEL_RECORD_REQUEST_H

#include "record_comm.h"
#include "shared.h"

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

#endif
