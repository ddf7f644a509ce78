/* Recording: its beginning and its end, and the ring to the Go side in between. */
#define _GNU_SOURCE
#include <sched.h>
#include <string.h>
#include <time.h>

#include "record.h"

struct pw_thread *pw_recorded;

/* The end of MPI_Init, which all ranks leave together. A barrier would tell
 * better, and hang where one rank does not record. */
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

void pw_record_now(uint64_t *ns, uint64_t *cpu_ns)
{
	*ns = pw_clock_ns(CLOCK_MONOTONIC) - origin_ns;
	*cpu_ns = pw_clock_ns(CLOCK_THREAD_CPUTIME_ID) - origin_cpu_ns;
}

void pw_record_start(struct pw_thread *t)
{
	if (!pw.recorder || __atomic_load_n(&pw.recorder->failed, __ATOMIC_RELAXED))
		return;
	origin_ns = pw_clock_ns(CLOCK_MONOTONIC);
	origin_cpu_ns = pw_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	pw.recorder->on = 1;
	if (!pw_mpi.by_session)
		pw_comm_id(pw_comm_find(pw_mpi.comm_world, 0)); /* number 0, to which calls without a communicator belong */
	__atomic_store_n(&pw_recorded, t, __ATOMIC_RELAXED);
}

/* How long the end of a process may be held up by its trace. */
#define END_MS 2000

void pw_record_exit(void)
{
	const struct timespec ms = {.tv_nsec = 1000000};

	if (!pw_is_recording() || pw_is_disabled() || !pw.recorder->on)
		return;
	__atomic_store_n(&pw_recorded, NULL, __ATOMIC_RELAXED);
	__atomic_store_n(&pw.recorder->end, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < END_MS && !__atomic_load_n(&pw.recorder->ended, __ATOMIC_ACQUIRE); i++)
		nanosleep(&ms, NULL);
}

void pw_record_finish(void)
{
	struct pw_record r;

	if (!pw_is_recording())
		return;
	memset(&r, 0, sizeof r);
	pw_record_now(&r.end_ns, &r.end_cpu_ns);
	r.start_ns = r.end_ns;
	r.start_cpu_ns = r.end_cpu_ns;
	r.op = PW_FINALIZE;
	r.peer = PW_NO_PEER;
	pw_record_emit(&r);
	__atomic_store_n(&pw_recorded, NULL, __ATOMIC_RELAXED);
}
