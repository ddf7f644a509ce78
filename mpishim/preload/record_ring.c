/* Recording: the ring to the Go side, and the clock. */
#define _GNU_SOURCE
#include <sched.h>

#include "record_ring.h"

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

uint64_t pw_record_changes(void)
{
	const uint64_t *changes = __atomic_load_n(&pw.recorder->changes, __ATOMIC_ACQUIRE);

	return changes ? __atomic_load_n(changes, __ATOMIC_ACQUIRE) : 0;
}

/* Has changes of memory noticed from now on. It is never taken back: a program that frees a buffer mostly allocates
 * another one near it. */
static void watch(uint64_t start, uint64_t bytes)
{
	struct pw_recorder *r = pw.recorder;
	uint64_t first = start >> PWT_GRANULE_BITS, n = ((start + bytes - 1) >> PWT_GRANULE_BITS) - first + 1;

	if (!__atomic_load_n(&r->changes, __ATOMIC_ACQUIRE))
		return;
	for (uint64_t i = 0; i < n && i < PWT_GRANULE_COUNT; i++) {
		uint64_t at = (first + i) % PWT_GRANULE_COUNT;

		if (r->interested[at / 64] >> at % 64 & 1)
			continue;
		r->interested[at / 64] |= 1ull << at % 64;
		__atomic_fetch_add(&r->interest[at], 1, __ATOMIC_SEQ_CST);
	}
}

void pw_record_emit(const struct pw_record *r)
{
	struct pw_record *at = pw_record_next();

	if (!at)
		return;
	*at = *r;
	if (r->dir && r->bytes >= pw.threshold)
		watch(r->addr, r->bytes);
	pw_record_push();
}

void pw_record_unnamed(const struct pw_thread *t, uint64_t addr, uint64_t bytes, int is_copy)
{
	struct pw_record r = {.op = PW_UNNAMED, .addr = addr, .bytes = bytes, .dir = 1u + !!is_copy};

	if (pw_recording(t))
		pw_record_emit(&r);
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
