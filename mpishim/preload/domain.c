/* The slots of protection domains; see domain.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "domain.h"
#include "thread.h"

static pthread_mutex_t take_lock = PTHREAD_MUTEX_INITIALIZER; /* of taking a slot; a leaf */

static void *pd_of(unsigned i) { return __atomic_load_n(&pw.domain[i].pd, __ATOMIC_ACQUIRE); }

static uint32_t closing_of(unsigned i) { return __atomic_load_n(&pw.domain[i].closing, __ATOMIC_ACQUIRE); }

static int is_open(unsigned i) { return pd_of(i) && closing_of(i) == PW_DOMAIN_OPEN; }

static int has_free(void)
{
	for (unsigned i = 0; i < PW_DOMAINS; i++)
		if (!pd_of(i))
			return 1;
	return 0;
}

/* The slot of a domain, a free one for it, or -1. */
static int find_or_take(void *pd)
{
	int found = -1;

	for (unsigned i = PW_DOMAINS; i-- > 0;) {
		if (pd_of(i) == pd && is_open(i))
			return (int)i; /* another thread was faster */
		if (!pd_of(i))
			found = (int)i;
	}
	if (found >= 0) {
		struct pw_domain *d = &pw.domain[found];

		__atomic_store_n(&d->generation, (d->generation + 1) % PW_GENERATIONS, __ATOMIC_RELAXED);
		__atomic_store_n(&d->closing, PW_DOMAIN_OPEN, __ATOMIC_RELEASE);
		__atomic_store_n(&d->pd, pd, __ATOMIC_RELEASE);
	}
	return found;
}

int pw_domain_take(void *pd)
{
	int i;

	if (!has_free())
		return -1;
	pthread_mutex_lock(&take_lock);
	i = find_or_take(pd);
	pthread_mutex_unlock(&take_lock);
	return i;
}

/* From here on each thread that entered before is seen to have done so, and others see what was stored before. Returns
 * -1 if the kernel has no such thing. */
static int order_others(void)
{
	if (!syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0))
		return 0;
	return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) ||
		       syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0)
	       ? -1 : 0;
}

/*
 * Closes a slot, or tries again with one whose cache was closed before, when a registration or a thread kept it. Then
 * the kernel refuses to deallocate the protection domain, too, and whoever does that tries again. A slot that nobody
 * drops is lost; as are all where threads can't be ordered. Returns -1 if nobody answers.
 */
static int close_slot(struct pw_thread *t, unsigned i, uint32_t was)
{
	struct pw_domain *d = &pw.domain[i];
	int answers, ordered, error = errno;

	if (!__atomic_compare_exchange_n(&d->closing, &was, PW_DOMAIN_DROPPING, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		return 0; /* another thread does it */
	ordered = !order_others();
	t->mail.domain = i;
	answers = !pw_ask(t, ordered ? PW_ASK_DROP : PW_ASK_CLOSE);
	if (answers && ordered && t->mail.error != EBUSY)
		__atomic_store_n(&d->pd, NULL, __ATOMIC_RELEASE); /* from now on the slot is free */
	else
		__atomic_store_n(&d->closing, PW_DOMAIN_CLOSED, __ATOMIC_RELEASE);
	errno = error;
	return answers ? 0 : -1;
}

/* Closes the domains that have to do with a protection domain or a device, and drops those that could not be before. */
static void close_matching(const void *pd, const void *context)
{
	struct pw_thread *t = pw_self();

	for (unsigned i = 0; t && i < PW_DOMAINS; i++) {
		uint32_t was = closing_of(i);
		const struct pw_pd *is = pd_of(i);

		if (is && (was == PW_DOMAIN_CLOSED || (was == PW_DOMAIN_OPEN && (pd ? is == pd : is->context == context))) &&
		    close_slot(t, i, was))
			return;
	}
}

void pw_domain_close(void *pd) { close_matching(pd, NULL); }

void pw_domain_close_all(const void *context) { close_matching(NULL, context); }
