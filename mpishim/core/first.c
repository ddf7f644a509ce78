/*
 * First uses, which the thread that needs them registers by itself: to ask the server takes two wake-ups
 * of threads, and both processors may be busy. The cache allows for it (regcache/offer.h), and the server
 * adopts the registration meanwhile. One system call of our own: the one that wakes the server.
 */
#define _GNU_SOURCE
#include "core.h"
#include "offer.h"

int pw_register_first(struct pw_thread *t, uint32_t domain, uint64_t addr, uint64_t bytes, uint32_t access,
		const struct pw_call_id *call, struct pwt_ref *ref)
{
	struct pwt_local *local = pw_local(t, domain);
	uint64_t low = addr & ~pw.page_mask, high = (addr + bytes + pw.page_mask) & ~pw.page_mask, start;
	struct pwt_offer *f;
	struct pw_region made;

	if (!local || addr + bytes < addr || !(f = pwt_take_offer(local, low, high, pwt_want(access))))
		return -1;
	start = pw_clock_ns(CLOCK_MONOTONIC);
	if (pw.register_region(__atomic_load_n(&pw.domain[domain].pd, __ATOMIC_ACQUIRE), (void *)(uintptr_t)low, high - low,
			       access, &made)) {
		pwt_offer_failed(local, f);
		return -1;
	}
	f->note[PW_NOTE_START] = start;
	f->note[PW_NOTE_END] = pw_clock_ns(CLOCK_MONOTONIC);
	f->note[PW_NOTE_OP] = call->op;
	f->note[PW_NOTE_SITE] = (uintptr_t)call->site;
	pw_add(&t->wait_ns, f->note[PW_NOTE_END] - start);
	pwt_offer_made(local, f, access, made.lkey | (uint64_t)made.rkey << 32, (uintptr_t)made.handle, ref);
	pw_ring_doorbell();
	return 0;
}
