/*
 * Misses that the thread registers by itself, first uses and late ones: to ask the server takes two wake-ups
 * of threads, and both processors may be busy. The cache allows for it (regcache/grant.h), and the server
 * publishes the registration after the use. One system call of our own: the one that wakes the server.
 *
 * Without it, a first use took 40 us in place of 6 beside processes that never sleep on every processor, and one in a
 * hundred 3.8 ms in place of .7 (by make bench-api, medians of 9 rounds in turn). A rank of Quantum ESPRESSO had 52 in
 * 6 s of processor time, so a job gains milliseconds. Two ranks that sent each of 1,000 buffers of 64 KiB once, on the
 * software device, took 1.3 times as long without it. It does nothing where each message has a buffer that is mapped
 * where the last one was unmapped: then the server has to see first what has changed.
 */
#define _GNU_SOURCE
#include "miss.h"
#include "thread.h"
#include "grant.h"

int pw_register_miss(struct pw_thread *t, uint32_t domain, uint64_t addr, uint64_t bytes, uint32_t access,
		const struct pw_call_id *call, struct pwt_ref *ref)
{
	struct pwt_local *local = pw_local(t, domain);
	struct pwt_missing m = {.low = addr & ~pw.page_mask, .high = (addr + bytes + pw.page_mask) & ~pw.page_mask, .access = access};
	struct pwt_grant *f;
	uint64_t start;
	struct pw_region made;

	if (!local || addr + bytes < addr || !(f = pwt_take_grant(local, pwt_want(access), &m)))
		return -1;
	start = pw_clock_ns(CLOCK_MONOTONIC);
	if (pw.register_region(__atomic_load_n(&pw.domain[domain].pd, __ATOMIC_ACQUIRE), (void *)(uintptr_t)m.low, m.high - m.low,
			       m.access, &made)) {
		pwt_grant_failed(local, f);
		return -1;
	}
	f->note[PW_NOTE_START] = start;
	f->note[PW_NOTE_END] = pw_clock_ns(CLOCK_MONOTONIC);
	f->note[PW_NOTE_OP] = call->op;
	f->note[PW_NOTE_SITE] = (uintptr_t)call->site;
	pw_add(&t->wait_ns, f->note[PW_NOTE_END] - start);
	pwt_grant_made(local, f, m.access, made.lkey | (uint64_t)made.rkey << 32, (uintptr_t)made.handle, ref);
	/* Until the use has ended, the processors are left to the transfer, unless grants become few (pw_put). */
	if (f - pwt_grants(local->table)->grant < PWT_GRANTS / 2)
		__atomic_store_n(&pw.unpublished, 1, __ATOMIC_RELEASE);
	else
		pw_ring_doorbell();
	return 0;
}
