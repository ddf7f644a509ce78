/* Giving a reference back, and telling the helper of the use. A hit makes no system call here, allocates nothing, takes no lock. */
#ifndef PINWHEEL_RELEASE_H
#define PINWHEEL_RELEASE_H

#include "ring.h"
#include "core.h"

/* The last part of a reference's life, which a hit does not have. */
static __attribute__((noinline, unused)) void pw_put_slow(struct pw_thread *t, uint32_t what, uint32_t domain, const struct pwt_ref *ref)
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

/* Of a reference that is held still: the region that the helper manages, 0 for none; and the pages that are registered. */
static inline uint64_t pw_ref_region(const struct pwt_ref *ref) { return ref->id ? ref->id : ref->desc->id; }

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
