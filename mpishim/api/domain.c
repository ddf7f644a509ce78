/* Domains, and the calls of the transport's callbacks for the server and past it. */
#define _GNU_SOURCE
#include <stdlib.h>

#include "api.h"
#include "plain.h"
#include "thread.h"

static unsigned domains; /* atomic: open */
uint64_t api_forks;

unsigned api_domains(void) { return __atomic_load_n(&domains, __ATOMIC_ACQUIRE); }
void api_domains_forget(void) { __atomic_store_n(&domains, 0, __ATOMIC_RELAXED); }

/* The result of a callback; -EIO if it is not what the header demands. */
static int status(int rc) { return rc > 0 || rc < -4095 ? -EIO : rc; }

static int call_reg(struct pinwheel_domain *d, const void *addr, size_t len, unsigned access, struct pinwheel_region *r)
{
	return status(d->ops.reg(d->arg, (void *)(uintptr_t)addr, len, access, r));
}

/* Whether the kernel or the device has refused and idle registrations were deregistered to make room. */
static int makes_room(int rc)
{
	struct pw_thread *t = pw_self();

	return (rc == -ENOMEM || rc == -EAGAIN || rc == -ENOSPC) && t && pw_is_managing() && !pw_ask(t, PW_ASK_CLEAN);
}

int api_plain_acquire(struct pinwheel_domain *d, const void *addr, size_t len, unsigned access, struct api_use *u)
{
	struct pinwheel_region r = {0};
	int rc;

	if (pw_plain_begins(pw_self(), addr, len)) {
		pw_plain_ended(addr, len);
		return -ENOMEM;
	}
	rc = call_reg(d, addr, len, access, &r);
	if (rc && makes_room(rc))
		rc = call_reg(d, addr, len, access, &r);
	if (rc) {
		pw_plain_ended(addr, len);
		return rc;
	}
	u->ref.desc = NULL;
	u->lkey = r.lkey;
	u->rkey = r.rkey;
	u->handle = r.handle;
	__atomic_fetch_add(&d->plain, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&d->held, 1, __ATOMIC_RELAXED);
	return 0;
}

int api_plain_release(struct pinwheel_domain *d, struct api_use *u)
{
	int rc = status(d->ops.dereg(d->arg, u->handle));

	if (!rc)
		pw_plain_ended((void *)(uintptr_t)u->start, u->end - u->start);
	__atomic_fetch_sub(&d->held, 1, __ATOMIC_RELEASE); /* from now on the domain may be closed */
	return rc;
}

int api_register(void *pd, void *addr, size_t bytes, unsigned access, struct pw_region *made)
{
	struct pinwheel_region r = {0};
	int rc = call_reg(pd, addr, bytes, access, &r);

	*made = (struct pw_region){.handle = r.handle, .lkey = r.lkey, .rkey = r.rkey};
	return -rc;
}

int api_deregister(void *pd, void *handle)
{
	struct pinwheel_domain *d = pd;

	return -status(d->ops.dereg(d->arg, handle));
}

/* A slot in pw.domain; PW_DOMAINS if all are taken. */
static uint32_t take_slot(struct pinwheel_domain *d)
{
	for (uint32_t i = 0; i < PW_DOMAINS; i++) {
		void *free = NULL;

		if (__atomic_compare_exchange_n(&pw.domain[i].pd, &free, d, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
			pw.domain[i].generation = (pw.domain[i].generation + 1) % PW_GENERATIONS;
			d->tag = pw_domain_tag(i);
			return i;
		}
	}
	return PW_DOMAINS;
}

static void free_slot(struct pinwheel_domain *d)
{
	if (d->place < PW_DOMAINS)
		__atomic_store_n(&pw.domain[d->place].pd, NULL, __ATOMIC_RELEASE);
	d->place = PW_DOMAINS;
}

/* Has the server create the cache now, which may take long and may fail. */
static void manage(struct pinwheel_domain *d)
{
	static uint32_t said;
	struct pw_thread *t = pw_self();

	if (!t || !pw_is_managing())
		return;
	d->place = take_slot(d);
	if (d->place == PW_DOMAINS) {
		if (!__atomic_exchange_n(&said, 1, __ATOMIC_RELAXED))
			pw_warn("more than %u domains are open; those beyond are registered for each use", PW_DOMAINS);
		return;
	}
	t->mail.domain = d->place;
	if (pw_ask(t, PW_ASK_OPEN) || t->mail.error)
		free_slot(d);
}

PW_EXPORT int pinwheel_domain_open(struct pinwheel *instance, const struct pinwheel_ops *ops, void *arg,
		struct pinwheel_domain **domain)
{
	struct pinwheel_domain *d;

	if (!instance || !domain || !ops || ops->size < sizeof *ops || !ops->reg || !ops->dereg)
		return -EINVAL;
	d = calloc(1, sizeof *d);
	if (!d)
		return -ENOMEM;
	d->ops = *ops;
	d->arg = arg;
	d->forks = api_forks;
	d->place = PW_DOMAINS;
	manage(d);
	__atomic_fetch_add(&domains, 1, __ATOMIC_RELEASE);
	*domain = d;
	return 0;
}

/* Has the server drop the cache of a domain: 0, -EBUSY or -ETIMEDOUT. */
static int drop_cache(struct pinwheel_domain *d)
{
	struct pw_thread *t = pw_self();

	if (d->place == PW_DOMAINS || d->forks != api_forks)
		return 0;
	if (!t)
		return -EBUSY;
	t->mail.domain = d->place;
	if (pw_ask(t, PW_ASK_DROP))
		return -ETIMEDOUT;
	return t->mail.error == EBUSY ? -EBUSY : 0;
}

/* Whether a thread is still in pinwheel_release with this domain. It reads *d until its end. */
static int is_being_released(const struct pinwheel_domain *d)
{
	for (struct pw_thread *t = __atomic_load_n(&pw.threads, __ATOMIC_ACQUIRE); t; t = t->next)
		if (__atomic_load_n(&t->using, __ATOMIC_ACQUIRE) == d)
			return 1;
	return 0;
}

PW_EXPORT int pinwheel_domain_close(struct pinwheel_domain *d)
{
	int rc;

	if (!d)
		return -EINVAL;
	__atomic_store_n(&d->closing, 1, __ATOMIC_RELEASE);
	rc = drop_cache(d);
	if (rc == -EBUSY || (d->forks == api_forks && is_being_released(d)))
		return -EBUSY;
	if (!rc)
		free_slot(d);
	if (d->forks == api_forks) {
		if (__atomic_load_n(&d->held, __ATOMIC_ACQUIRE))
			return -EBUSY;
		__atomic_fetch_sub(&domains, 1, __ATOMIC_RELEASE);
	}
	if (!rc)
		free(d); /* else the helper library may still use it */
	return rc;
}
