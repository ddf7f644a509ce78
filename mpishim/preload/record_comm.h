/*
 * Recording: communicators, and windows, which have members as well. Threads that are not recorded
 * create and free them, too.
 */
#ifndef PINWHEEL_RECORD_COMM_H
#define PINWHEEL_RECORD_COMM_H

#include "mpi_handles.h"

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
void pw_comm_forget(pw_word handle);			     /* the handle may be given to another one */

#endif
