/*
 * First uses, which the thread that needs them registers by itself: to ask the server takes two wake-ups
 * of threads, and both processors may be busy. The cache allows for it (regcache/grant.h), and the server
 * publishes the registration meanwhile. One system call of our own: the one that wakes the server.
 *
 * Without it, a first use took 40 us in place of 6 beside processes that never sleep on every processor, and one in a
 * hundred 3.8 ms in place of .7 (by make bench-api, medians of 9 rounds in turn). A rank of Quantum ESPRESSO had 52 in
 * 6 s of processor time, so a job gains milliseconds. Two ranks that sent each of 1,000 buffers of 64 KiB once, on the
 * software device, took 1.3 times as long without it. It does nothing where a program maps and unmaps a buffer for each
 * message: then the server has to see first what has changed.
 */
#define _GNU_SOURCE
#include "first.h"
#include "thread.h"
#include "grant.h"

int pw_register_first(struct pw_thread *t, uint32_t domain, uint64_t addr, uint64_t bytes, uint32_t access,
		const struct pw_call_id *call, struct pwt_ref *ref)
{
	struct pwt_local *local = pw_local(t, domain);
	uint64_t low = addr & ~pw.page_mask, high = (addr + bytes + pw.page_mask) & ~pw.page_mask, start;
	struct pwt_grant *f;
	struct pw_region made;

	if (!local || addr + bytes < addr || !(f = pwt_take_grant(local, low, high, pwt_want(access))))
		return -1;
	start = pw_clock_ns(CLOCK_MONOTONIC);
	if (pw.register_region(__atomic_load_n(&pw.domain[domain].pd, __ATOMIC_ACQUIRE), (void *)(uintptr_t)low, high - low,
			       access, &made)) {
		pwt_grant_failed(local, f);
		return -1;
	}
	f->note[PW_NOTE_START] = start;
	f->note[PW_NOTE_END] = pw_clock_ns(CLOCK_MONOTONIC);
	f->note[PW_NOTE_OP] = call->op;
	f->note[PW_NOTE_SITE] = (uintptr_t)call->site;
	pw_add(&t->wait_ns, f->note[PW_NOTE_END] - start);
	pwt_grant_made(local, f, access, made.lkey | (uint64_t)made.rkey << 32, (uintptr_t)made.handle, ref);
	pw_ring_doorbell();
	return 0;
}
