/* Recording: the ring to the Go side, and the clock. */
#define _GNU_SOURCE
#include <sched.h>

#include "record.h"

struct pw_thread *pw_recorded;

/* Times count from the end of MPI_Init, which all ranks leave together. A barrier would be more exact, but it
 * would hang if one rank does not record. */
static uint64_t origin_ns, origin_cpu_ns;

/* How long a call may be held up by a full ring before recording ends. */
#define RING_TIMEOUT_NS 2000000000ull

struct pw_record *pw_record_next(void)
{
	struct pw_recorder *r = pw.recorder;
	uint64_t since = 0;

	while (pw_unlikely(r->head - __atomic_load_n(&r->tail, __ATOMIC_ACQUIRE) >= PW_RECORDS)) {
		uint64_t now = pw_clock_ns(CLOCK_MONOTONIC);

		if (!since)
			since = now;
		if (now - since > RING_TIMEOUT_NS || __atomic_load_n(&r->failed, __ATOMIC_RELAXED)) {
			__atomic_store_n(&r->failed, 1, __ATOMIC_RELAXED);
			__atomic_store_n(&pw_recorded, NULL, __ATOMIC_RELAXED);
			return NULL;
		}
		sched_yield();
	}
	return &r->record[r->head & (PW_RECORDS - 1)];
}

void pw_record_push(void) { __atomic_store_n(&pw.recorder->head, pw.recorder->head + 1, __ATOMIC_RELEASE); }

void pw_record_emit(const struct pw_record *r)
{
	struct pw_record *at = pw_record_next();

	if (!at)
		return;
	*at = *r;
	pw_record_push();
}

void pw_record_clock_start(void)
{
	origin_ns = pw_clock_ns(CLOCK_MONOTONIC);
	origin_cpu_ns = pw_clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

void pw_record_now(uint64_t *ns, uint64_t *cpu_ns)
{
	*ns = pw_clock_ns(CLOCK_MONOTONIC) - origin_ns;
	*cpu_ns = pw_clock_ns(CLOCK_THREAD_CPUTIME_ID) - origin_cpu_ns;
}
