/* Puts references and reports uses to the helper. After a hit this makes no system call, allocates
 * nothing and takes no lock. */
#ifndef PINWHEEL_RELEASE_H
#define PINWHEEL_RELEASE_H

#include "ring.h"
#include "core.h"

/* The slow path: the server has to look after the reference. */
static __attribute__((noinline, unused)) void pw_put_slow(struct pw_thread *t, uint32_t what,
		uint32_t domain, const struct pwt_ref *ref)
{
	t->mail.domain = domain;
	t->mail.ref = *ref;
	pw_ask(t, what);
}

static inline void pw_put(struct pw_thread *t, uint32_t domain, const struct pwt_ref *ref)
{
	struct pwt_local *local = pw_local(t, domain);

	if (pw_unlikely(!local))
		pw_put_slow(t, PW_ASK_RELEASE, domain, ref);
	else if (pwt_put(local, ref))
		pw_put_slow(t, PW_ASK_SWEEP, domain, ref);
}

/* The region that a held reference belongs to, as the helper knows it; 0 for none. */
static inline uint64_t pw_ref_region(const struct pwt_ref *ref) { return ref->id ? ref->id : ref->desc->id; }

/* The pages that are registered under a held reference. */
static inline uint32_t pw_ref_pages(const struct pwt_ref *ref)
{
	return (uint32_t)((ref->desc->high - ref->desc->low) >> __builtin_ctzll(pw.page_mask + 1));
}

static inline void pw_report_use(struct pw_thread *t, const struct pw_event *e)
{
	struct pw_event *slot = pw_ring_next(&t->ring);

	if (!slot)
		return;
	*slot = *e;
	pw_ring_push(&t->ring);
}

#endif
