/* Puts references and reports uses to the helper. After a hit this makes no system call, allocates
 * nothing and takes no lock. */
#ifndef PINWHEEL_RELEASE_H
#define PINWHEEL_RELEASE_H

#include "ring.h"
#include "thread.h"

/* The slow path: the server has to look after the reference. -1 if it does not answer. */
static __attribute__((noinline, unused)) int pw_put_slow(struct pw_thread *t, uint32_t what,
		uint32_t domain, const struct pwt_ref *ref)
{
	t->mail.domain = domain;
	t->mail.ref = *ref;
	return pw_ask(t, what);
}

static inline void pw_put(struct pw_thread *t, uint32_t domain, const struct pwt_ref *ref)
{
	struct pwt_local *local = pw_local(t, domain);

	if (pw_unlikely(!local))
		pw_put_slow(t, PW_ASK_RELEASE, domain, ref);
	else if (pwt_put(local, ref) && pw_put_slow(t, PW_ASK_SWEEP, domain, ref))
		__atomic_store_n(&local->table->undone, 1, __ATOMIC_RELEASE); /* it looks at this one when it sweeps or cleans */
	if (pw_unlikely(__atomic_load_n(&pw.unpublished, __ATOMIC_RELAXED)) &&
	    __atomic_exchange_n(&pw.unpublished, 0, __ATOMIC_RELAXED))
		pw_ring_doorbell();
}

/* The region that a held reference belongs to, as the helper knows it; 0 for none. */
static inline uint64_t pw_ref_region(const struct pwt_ref *ref) { return ref->id ? ref->id : ref->desc->id; }

/* The pages that are registered under a held reference. */
static inline uint32_t pw_ref_pages(const struct pwt_ref *ref)
{
	return (uint32_t)((ref->desc->high - ref->desc->low) >> __builtin_ctzll(pw.page_mask + 1));
}

/* Reports a use. It writes each word once: a copy of the event would wait for the words it was made of. */
static inline void pw_report_use(struct pw_thread *t, uint64_t region, uint32_t pages, uint64_t start, uint64_t end,
				 uint64_t start_ticks, const struct pw_site *site, uint32_t op)
{
	struct pw_event *e = pw_ring_next(&t->ring);

	if (!e)
		return;
	e->region = region;
	e->start = start;
	e->end = end;
	e->start_ticks = start_ticks;
	e->end_ticks = pw_ticks();
	e->site = site;
	e->op = op;
	e->pages = pages;
	pw_ring_push(&t->ring);
}

#endif
