/* What the files of recording have in common. Only the recorded thread uses any of it. */
#ifndef PINWHEEL_RECORD_H
#define PINWHEEL_RECORD_H

#include "call.h"

/* record.c: the ring to the Go side */
struct pw_record *pw_record_next(void); /* where the next record is to be written; NULL: recording has ended */
void pw_record_push(void);		/* it is written */

/* record_comm.c: communicators, their IDs and members; a place is -1 where that isn't known */
int pw_comm_at(pw_word comm);		/* its place, announced in the trace if it is new */
int32_t pw_comm_id(int place);		/* in the trace */
int pw_comm_members(int place);		/* how many */
int32_t pw_world_rank(int place, int64_t peer); /* trace.Record.Peer of a rank in a communicator */

/* record_request.c: requests, and the number that each has in the trace */
uint32_t pw_request_add(uint64_t key);	/* its number */
uint32_t pw_request_slot(uint64_t key); /* where it is kept; 0: it was not recorded */
uint32_t pw_request_end(uint32_t slot); /* its number, once: it has completed */

/* What a persistent request does whenever it is started; kept to the end. */
void pw_persistent_add(uint64_t key, const struct pw_record *r);
const struct pw_record *pw_persistent_find(uint64_t key); /* NULL: not recorded */

#endif
