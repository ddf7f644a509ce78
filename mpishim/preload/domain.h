/*
 * The slots of the protection domains that have caches. A thread that uses a slot says so (pw_domain_enter), and a slot
 * is given to another domain only when nobody does: its cache and the Locals of threads are unmapped then. That costs
 * the thread two plain stores; who closes a domain makes the processors of the others order them (membarrier).
 */
#ifndef PINWHEEL_DOMAIN_H
#define PINWHEEL_DOMAIN_H

#include "process.h"

/* Values of pw_domain.closing. */
enum { PW_DOMAIN_OPEN, PW_DOMAIN_CLOSED, PW_DOMAIN_DROPPING };

int pw_domain_take(void *pd); /* a free slot for a domain that may have none yet; -1 if all are taken */
void pw_domain_close(void *pd); /* before a protection domain is deallocated, whose registrations would keep it busy */
void pw_domain_close_all(const void *context); /* those of a device */

/* struct ibv_pd begins with its context. */
struct pw_pd {
	void *context;
};

/* From here to pw_domain_leave, the slot of this domain is not given to another. */
static inline void pw_domain_enter(struct pw_thread *t, void *pd)
{
	__atomic_store_n(&t->using, pd, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST); /* see membarrier in domain.c */
}

static inline void pw_domain_leave(struct pw_thread *t) { __atomic_store_n(&t->using, NULL, __ATOMIC_RELEASE); }

/* The slot of a protection domain, which gets one at first use; -1 if it can have none. For a thread that has
 * entered. */
static inline int pw_domain_of(void *pd)
{
	for (unsigned i = 0; i < PW_DOMAINS; i++) {
		const struct pw_domain *d = &pw.domain[i];

		/* The second look: between the first two the slot may have been given to another. */
		if (__atomic_load_n(&d->pd, __ATOMIC_ACQUIRE) == pd &&
		    __atomic_load_n(&d->closing, __ATOMIC_ACQUIRE) == PW_DOMAIN_OPEN &&
		    __atomic_load_n(&d->pd, __ATOMIC_RELAXED) == pd)
			return (int)i;
	}
	return pw_domain_take(pd);
}

#endif
