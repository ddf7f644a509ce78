/* Recording, as the wrappers see it: see record.c. */
#ifndef PINWHEEL_RECORDING_H
#define PINWHEEL_RECORDING_H

#include "call.h"

void pw_record_begin(struct pw_call *c);
void pw_record_end(struct pw_call *c);
void pw_record_left_out(const struct pw_call *c); /* counts a call of a thread that is not recorded */
void pw_record_created(const struct pw_call *c);     /* the call has created a communicator or window */
void pw_comm_forget(pw_word handle);              /* the handle may be given to another one */
void pw_record_start(struct pw_thread *t); /* at the end of MPI_Init */
void pw_record_finish(void);               /* at the beginning of MPI_Finalize */
/* A registration of memory that no recorded call was given: MPI's copy of a buffer, or a pool. */
void pw_record_unnamed(const struct pw_thread *t, uint64_t addr, uint64_t bytes, int is_copy);
void pw_record_exit(void);                 /* where the process ends without MPI_Finalize */

extern struct pw_thread *pw_recorded; /* atomic: the thread whose calls are recorded; NULL if recording is off */

static inline int pw_is_recording(void) { return pw_unlikely(__atomic_load_n(&pw_recorded, __ATOMIC_RELAXED) != NULL); }

static inline int pw_recording(const struct pw_thread *t)
{
	return pw_unlikely(__atomic_load_n(&pw_recorded, __ATOMIC_RELAXED) == t);
}

#endif
