/* Recording: which thread is recorded, the ring to the Go side, and the time since the beginning. */
#ifndef PINWHEEL_RECORD_RING_H
#define PINWHEEL_RECORD_RING_H

#include "process.h"

/* trace.Record.Peer. */
#define PW_ANY_SOURCE (-1)
#define PW_NO_PEER (-2)
#define PW_ELSEWHERE (-3)
#define PW_ANY_TAG (-1)

extern struct pw_thread *pw_recorded; /* atomic: the thread whose calls are recorded; NULL if recording is off */

static inline int pw_is_recording(void) { return pw_unlikely(__atomic_load_n(&pw_recorded, __ATOMIC_RELAXED) != NULL); }

static inline int pw_recording(const struct pw_thread *t)
{
	return pw_unlikely(__atomic_load_n(&pw_recorded, __ATOMIC_RELAXED) == t);
}

/* Only the recorded thread calls these. */
struct pw_record *pw_record_next(void); /* the slot for the next record; NULL if recording has ended */
void pw_record_push(void);		/* the slot is filled in */
void pw_record_emit(const struct pw_record *r);
uint64_t pw_record_changes(void); /* of mappings so far, as far as they are noticed */
void pw_record_clock_start(void);
void pw_record_now(uint64_t *ns, uint64_t *cpu_ns); /* since then */

/* A registration of memory that no recorded call was given: MPI's copy of a buffer, or a pool. Any thread may call it. */
void pw_record_unnamed(const struct pw_thread *t, uint64_t addr, uint64_t bytes, int is_copy);

#endif
