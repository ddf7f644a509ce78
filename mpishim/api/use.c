/*
 * Uses of registered memory.
 *
 * Budget of a hit, from pinwheel_acquire to pinwheel_release: no system call, no
 * allocation, no lock, no Go. A first use is registered in this thread (first.c); any other miss
 * asks the server (pw_ask). If the server refuses, the transport's callback registers the memory
 * in this thread, past the cache.
 */
#define _GNU_SOURCE
#include "api.h"
#include "first.h"
#include "release.h"
#include "site.h"
#include "thread.h"

/* Gets a reference from the table. */
static inline __attribute__((always_inline)) int hit(struct pw_thread *t, struct pinwheel_domain *d,
		const void *addr, size_t len,
						     unsigned access, struct api_use *u)
{
	struct pwt_local *local;

	return pw_likely(t && api_is_managed(d) && (local = pw_local(t, d->place)) &&
			 pwt_get(local, addr, len, pwt_want(access), &u->ref));
}

/* Asks the server for a reference. Returns 0 or a negative errno. */
static int ask(uint32_t what, struct pw_thread *t, struct pinwheel_domain *d, const void *addr, size_t len,
		unsigned access,
	       struct api_use *u)
{
	struct pw_mailbox *m;

	if (!t || !api_is_managed(d) || access & ~API_SHAREABLE)
		return -EOPNOTSUPP;
	m = &t->mail;
	m->domain = d->place;
	m->addr = (uintptr_t)addr;
	m->bytes = len;
	m->access = access;
	if (pw_ask(t, what))
		return -ETIMEDOUT;
	if (m->error)
		return -m->error;
	u->ref = m->ref;
	return 0;
}

static __attribute__((noinline)) int missed(struct pw_thread *t, struct pinwheel_domain *d,
		const void *addr, size_t len,
					    unsigned access, struct api_use *u)
{
	int rc;

	if (!api_is_memory(addr, len))
		return -EINVAL;
	if (__atomic_load_n(&d->closing, __ATOMIC_ACQUIRE))
		return -ESHUTDOWN;
	if (t && api_is_managed(d) && !(access & ~API_SHAREABLE) &&
	    !pw_register_first(t, d->place, (uintptr_t)addr, len, access, &t->mail.call, &u->ref))
		return 0;
	rc = ask(PW_ASK_ACQUIRE, t, d, addr, len, access, u);
	if (!rc || rc == -ENOMEM || rc == -EAGAIN || rc == -ENOSPC)
		return rc; /* idle registrations are already gone */
	rc = api_plain_acquire(d, addr, len, access, u);
	if (!rc && t)
		pw_add(&t->plain_calls, 1);
	return rc;
}

static __attribute__((noinline)) int missed_try(struct pw_thread *t, struct pinwheel_domain *d,
		const void *addr, size_t len,
						unsigned access, struct api_use *u)
{
	if (!api_is_memory(addr, len))
		return -EINVAL;
	return ask(PW_ASK_QUERY, t, d, addr, len, access, u) ? -ENOENT : 0;
}

/* Fills in an acquired use, for the transport and for the report to the helper. */
static inline __attribute__((always_inline)) void fill(struct pw_thread *t, struct pinwheel_domain *d,
		const void *addr, size_t len,
						       uint64_t start_ticks, uint64_t site, void **frame, struct api_use *u)
{
	u->domain = d;
	u->start = (uintptr_t)addr;
	u->end = u->start + len;
	u->start_ticks = start_ticks;
	u->forks = api_forks;
	if (pw_unlikely(!u->ref.desc))
		return;
	u->lkey = (uint32_t)u->ref.keys;
	u->rkey = (uint32_t)(u->ref.keys >> 32);
	u->handle = (void *)(uintptr_t)u->ref.desc->handle;
	pw_add(&t->managed, 1);
	if (!start_ticks)
		return;
	u->site = site ? pw_site_at(t, site) : pw_site_here(t, frame);
}

/* Tells the server at which call site it is about to be asked, for the report. */
static __attribute__((noinline)) void name_site(struct pw_thread *t, uint64_t site, void **frame)
{
	t->mail.call.op = PW_OTHER;
	t->mail.call.site = site ? pw_site_at(t, site) : pw_site_here(t, frame);
}

typedef int (*missed_fn)(struct pw_thread *, struct pinwheel_domain *, const void *, size_t, unsigned,
		struct api_use *);

static inline __attribute__((always_inline)) int acquire(struct pinwheel_domain *d, const void *addr,
		size_t len, unsigned access,
							 uint64_t site, void **frame, struct pinwheel_use *use, missed_fn otherwise)
{
	struct api_use *u = (struct api_use *)use;
	struct pw_thread *t = pw_self();
	uint64_t start;
	int rc;

	if (pw_unlikely(!d || !u))
		return -EINVAL;
	start = pw_wants_events() && len >= pw.threshold ? pw_ticks() : 0;
	if (!hit(t, d, addr, len, access, u)) {
		if (t)
			name_site(t, site, frame);
		if (pw_unlikely((rc = otherwise(t, d, addr, len, access, u)))) {
			u->domain = NULL;
			return rc;
		}
	}
	fill(t, d, addr, len, start, site, frame, u);
	return 0;
}

PW_EXPORT int pinwheel_acquire(struct pinwheel_domain *d, const void *addr, size_t len, unsigned access, uint64_t site,
			       struct pinwheel_use *use)
{
	return acquire(d, addr, len, access, site, __builtin_frame_address(0), use, missed);
}

PW_EXPORT int pinwheel_try_acquire(struct pinwheel_domain *d, const void *addr, size_t len,
		unsigned access, uint64_t site,
				   struct pinwheel_use *use)
{
	return acquire(d, addr, len, access, site, __builtin_frame_address(0), use, missed_try);
}

PW_EXPORT int pinwheel_release(struct pinwheel_use *use)
{
	struct api_use *u = (struct api_use *)use;
	struct pinwheel_domain *d;
	struct pw_thread *t;
	uint64_t region;
	uint32_t pages;

	if (pw_unlikely(!u || !(d = u->domain)))
		return -EINVAL;
	u->domain = NULL;
	if (pw_unlikely(u->forks != api_forks))
		return 0;
	if (pw_unlikely(!u->ref.desc))
		return api_plain_release(d, u);
	if (pw_unlikely(!(t = pw_self()))) {
		u->domain = d;
		return -ENOMEM;
	}
	region = pw_ref_region(&u->ref);
	pages = pw_ref_pages(&u->ref);
	/* After the put another thread could close the domain. With this mark a close fails with -EBUSY. */
	__atomic_store_n(&t->using, d, __ATOMIC_RELAXED);
	/* First, because the helper cannot deregister memory in use. */
	pw_put(t, d->place, &u->ref);
	if (region && u->start_ticks && pw_wants_events())
		pw_report_use(t, pw_tagged(d->tag, region), pages, u->start, u->end, u->start_ticks, u->site, PW_OTHER);
	__atomic_store_n(&t->using, NULL, __ATOMIC_RELEASE);
	return 0;
}

PW_EXPORT int pinwheel_is_registered(struct pinwheel_domain *d, const void *addr, size_t len, unsigned access)
{
	struct pw_thread *t = pw_self();
	struct api_use u;
	int rc;

	if (!d)
		return -EINVAL;
	if (!hit(t, d, addr, len, access, &u) && (rc = missed_try(t, d, addr, len, access, &u)))
		return rc == -ENOENT ? 0 : rc;
	pw_put(t, d->place, &u.ref);
	return 1;
}
