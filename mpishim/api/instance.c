/* The calls about the whole library: init, fini, limits, cleaning, counts. */
#define _GNU_SOURCE
#include <pthread.h>
#include <string.h>

#include "api.h"
#include "site.h"
#include "start.h"
#include "thread.h"

struct pinwheel {
	unsigned users; /* calls of pinwheel_init without pinwheel_fini; protected by lock */
};

/* Orders init and fini. It is held while the Go side starts and stops. No use takes it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct pinwheel the;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Threads that held the lock or were releasing do not exist in the child. Domains do, but hold nothing there. */
static void in_child(void)
{
	for (struct pw_thread *t = __atomic_load_n(&pw.threads, __ATOMIC_ACQUIRE); t; t = t->next)
		__atomic_store_n(&t->using, NULL, __ATOMIC_RELAXED);
	api_forks++;
	api_domains_forget();
	pthread_mutex_init(&lock, NULL);
}

static void prepare(void)
{
	pthread_atfork(NULL, NULL, in_child); /* fails without memory only; a forked child is then on its own */
	pw_prepare();
	pw_site_init();
	pw.linked = 1;
	__atomic_store_n(&pw.verbs_used, 1, __ATOMIC_RELAXED);
	pw.register_region = api_register;
	pw.deregister_region = api_deregister;
}

/* Counts begin at the first pinwheel_init. */
static void forget_counts(void)
{
	for (struct pw_thread *t = __atomic_load_n(&pw.threads, __ATOMIC_ACQUIRE); t; t = t->next)
		for (unsigned i = 0; i < 4; i++)
			__atomic_store_n((uint64_t *[]){&t->managed, &t->plain_calls, &t->wait_ns, &t->ring.lost}[i], 0, __ATOMIC_RELAXED);
}

static void begin(const struct pinwheel_options *o)
{
	pthread_once(&once, prepare);
	forget_counts();
	pw.rank = o && o->ranks > 0 ? o->rank : -1;
	pw.size = o && o->ranks > 0 ? o->ranks : -1;
	memset(pw.library, 0, sizeof pw.library);
	if (o && o->name)
		strncpy(pw.library, o->name, sizeof pw.library - 1);
	pw_start();
}

static void end(void)
{
	struct pw_thread *t = pw_self();

	pw_stop();
	if (t && !pw_is_disabled())
		pw_ask(t, PW_ASK_END);
}

PW_EXPORT int pinwheel_init(const struct pinwheel_options *options, struct pinwheel **instance)
{
	if (!instance || (options && options->size < sizeof *options))
		return -EINVAL;
	pthread_mutex_lock(&lock);
	if (!the.users++)
		begin(options);
	pthread_mutex_unlock(&lock);
	*instance = &the;
	return 0;
}

PW_EXPORT int pinwheel_fini(struct pinwheel *instance)
{
	int rc = 0;

	if (instance != &the)
		return -EINVAL;
	pthread_mutex_lock(&lock);
	if (!the.users)
		rc = -EINVAL;
	else if (the.users == 1 && api_domains())
		rc = -EBUSY;
	else if (!--the.users)
		end();
	pthread_mutex_unlock(&lock);
	return rc;
}

/* Asks about a domain or all. Returns 0 or a negative errno, -ENOENT if nothing is managed. */
static int ask_about(struct pw_thread *t, struct pinwheel_domain *d, uint32_t what)
{
	if (!pw_is_managing() || (d && d->place == PW_DOMAINS))
		return -ENOENT;
	t->mail.domain = d ? d->place : PW_ALL;
	return pw_ask(t, what) ? -ENOENT : -t->mail.error;
}

PW_EXPORT int pinwheel_limits(struct pinwheel *instance, struct pinwheel_domain *d,
		const struct pinwheel_limits *limits)
{
	struct pw_thread *t = pw_self();
	int rc;

	if (instance != &the || !limits || limits->size < sizeof *limits)
		return -EINVAL;
	if (!t)
		return -ENOMEM;
	t->mail.bytes = limits->bytes;
	t->mail.addr = limits->regions;
	rc = ask_about(t, d, PW_ASK_LIMIT);
	return rc == -ENOENT ? 0 : rc;
}

PW_EXPORT int pinwheel_clean(struct pinwheel *instance, struct pinwheel_domain *d)
{
	struct pw_thread *t = pw_self();
	int rc;

	if (instance != &the)
		return -EINVAL;
	if (!t)
		return -ENOMEM;
	rc = ask_about(t, d, PW_ASK_RELEASE_IDLE);
	return rc == -ENOENT ? 0 : rc ? rc : (int)t->mail.bytes;
}

static void add_threads(struct pinwheel_stats *s, int all)
{
	for (struct pw_thread *t = __atomic_load_n(&pw.threads, __ATOMIC_ACQUIRE); t; t = t->next) {
		if (all)
			s->plain += __atomic_load_n(&t->plain_calls, __ATOMIC_RELAXED);
		s->wait_ns += __atomic_load_n(&t->wait_ns, __ATOMIC_RELAXED);
		s->lost_events += __atomic_load_n(&t->ring.lost, __ATOMIC_RELAXED);
	}
}

PW_EXPORT int pinwheel_stats(struct pinwheel *instance, struct pinwheel_domain *d, struct pinwheel_stats *stats)
{
	struct pinwheel_stats s = {.size = sizeof s};
	struct pw_thread *t = pw_self();

	if (instance != &the || !stats || stats->size < sizeof *stats)
		return -EINVAL;
	if (!t)
		return -ENOMEM;
	if (!ask_about(t, d, PW_ASK_COUNT)) {
		const struct pw_counts *c = &t->mail.counts;

		s.hits = c->hits;
		s.waited = c->waited;
		s.first = c->first;
		s.late = c->late;
		s.failed = c->failed;
		s.helper_registrations = c->helper_registers;
		s.helper_deregistrations = c->helper_deregisters;
		s.evicted = c->evicted;
		s.invalidated = c->invalidated;
		s.pinned_bytes = c->pinned_bytes;
		s.pinned_regions = c->pinned_regions;
		s.peak_pinned_bytes = c->peak_pinned_bytes;
	}
	if (d)
		s.plain = __atomic_load_n(&d->plain, __ATOMIC_RELAXED);
	add_threads(&s, !d);
	*stats = s;
	return 0;
}
