/* Memory that is registered ahead of its first use. A goroutine of the Go side does it, since the server has others to
 * answer; this thread waits, and tells the transport of the progress. */
#define _GNU_SOURCE
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "api.h"
#include "thread.h"

#define TELL_MS 50 /* how often */

/* Has the server begin. 0 if it has, or will not. */
static int begin(struct pw_thread *t, struct pinwheel_domain *d, void *addr, size_t len, unsigned access, unsigned threads)
{
	struct pw_prepare *p = &t->prepare;
	struct pw_mailbox *m = &t->mail;
	uint32_t asked = PW_PREPARE_ASKED;

	*p = (struct pw_prepare){.threads = threads, .tid = (uint32_t)syscall(SYS_gettid), .cpu = sched_getcpu()};
	__atomic_store_n(&p->state, PW_PREPARE_ASKED, __ATOMIC_RELAXED);
	m->domain = d->place;
	m->addr = (uintptr_t)addr;
	m->bytes = len;
	m->access = access;
	pw_ask(t, PW_ASK_PREPARE);
	/* Without an answer it may be about to begin. One of the two comes first. */
	return __atomic_compare_exchange_n(&p->state, &asked, PW_PREPARE_IDLE, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) ? -1 : 0;
}

static void tell(const struct pinwheel_prepare_options *o, struct pw_prepare *p)
{
	if (o && o->progress && o->progress(o->arg, __atomic_load_n(&p->done, __ATOMIC_RELAXED)))
		__atomic_store_n(&p->cancel, 1, __ATOMIC_RELAXED);
}

PW_EXPORT int pinwheel_prepare(struct pinwheel_domain *d, void *addr, size_t len, unsigned access,
			       const struct pinwheel_prepare_options *options)
{
	struct pw_thread *t = pw_self();
	struct pw_prepare *p;

	if (!d || !api_is_memory(addr, len) || (options && options->size < sizeof *options))
		return -EINVAL;
	if (!t)
		return -ENOMEM;
	if (__atomic_load_n(&d->closing, __ATOMIC_ACQUIRE))
		return -ESHUTDOWN;
	if (!api_is_managed(d) || access & ~API_SHAREABLE ||
	    begin(t, d, addr, len, access, options ? options->threads : 0))
		return 0;
	p = &t->prepare;
	while (__atomic_load_n(&p->state, __ATOMIC_ACQUIRE) != PW_PREPARE_DONE) {
		tell(options, p);
		pw_sleep_on(&p->state, PW_PREPARE_RUNNING, TELL_MS);
	}
	if (!p->error)
		tell(options, p);
	return -p->error;
}
