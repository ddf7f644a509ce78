#include "first.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

enum { PAGE = 4096 };

struct pwt_grant *ct_take(struct ct_thread *t, char *addr, size_t len)
{
	struct pwt_missing m = {.low = (uintptr_t)addr, .high = (uintptr_t)addr + len, .access = 1};

	return pwt_take_grant(t->local, pwt_want(1), &m);
}

struct pwt_ref ct_made(struct ct_thread *t, struct pwt_grant *f, uint64_t handle)
{
	struct pwt_ref ref;

	pwt_grant_made(t->local, f, 1, (uint32_t)handle | (uint64_t)~(uint32_t)handle << 32, handle, &ref);
	return ref;
}

void ct_failed(struct ct_thread *t, struct pwt_grant *f) { pwt_grant_failed(t->local, f); }

int ct_hit(struct ct_thread *t, char *addr, size_t len, struct pwt_ref *ref)
{
	return pwt_get(t->local, addr, len, pwt_want(1), ref);
}

void ct_drop(struct ct_thread *t, struct pwt_ref ref) { ct_put(t, &ref); }

struct worker {
	pthread_t thread;
	const struct ct_run *run;
	struct ct_versions *versions;
	unsigned seed;
	struct ct_firsts got;
};

/* Registers a first use: 1 if it has. */
static int register_first(struct worker *w, struct ct_thread *t, char *addr, size_t len, struct pwt_ref *ref)
{
	struct pwt_grant *f = ct_take(t, addr, len);
	uint64_t handle;

	if (!f)
		return 0;
	handle = rand_r(&w->seed) % 16 ? ct_register(w->run->cache, (void *)f->low, f->high - f->low) : 0; /* the kernel refuses some */
	if (!handle) {
		ct_failed(t, f);
		return 0;
	}
	*ref = ct_made(t, f, handle);
	w->got.first++;
	return 1;
}

static void check(struct worker *w, const struct pwt_ref *ref, unsigned first, unsigned pages, const uint32_t *before)
{
	const struct pwt_desc *d = ref->desc;
	const uint32_t *made = w->versions->registered[d->handle];
	uintptr_t start = (uintptr_t)w->run->base + (size_t)first * PAGE;

	if (!__atomic_load_n(&w->run->alive[d->handle], __ATOMIC_ACQUIRE))
		w->got.got.stale++;
	if (d->low > start || d->high < start + (size_t)pages * PAGE || d->keys != ref->keys)
		w->got.got.wrong++;
	for (unsigned i = 0; i < pages; i++)
		if ((int32_t)(__atomic_load_n(&made[first + i], __ATOMIC_ACQUIRE) - before[i]) < 0) {
			w->got.old++;
			return;
		}
}

static time_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	return t.tv_sec;
}

static void use(struct worker *w, struct ct_thread *t)
{
	time_t end = now() + w->run->seconds;

	for (unsigned long i = 0; i < w->run->iterations && now() < end; i++) {
		unsigned r = (unsigned)rand_r(&w->seed), pages = 1 + r / 64 % 4, first = r % (w->run->pages - pages);
		char *addr = w->run->base + (size_t)first * PAGE;
		uint32_t before[4];
		struct pwt_ref ref;
		int outcome = 0;

		for (unsigned k = 0; k < pages; k++)
			before[k] = __atomic_load_n(&w->versions->told[first + k], __ATOMIC_ACQUIRE);
		if (!ct_hit(t, addr, pages * PAGE, &ref) && !register_first(w, t, addr, pages * PAGE, &ref))
			outcome = ct_get_slow(t->go, addr, pages * PAGE, 1, &ref);
		if (outcome < 0) {
			w->got.got.failed++;
			continue;
		}
		w->got.got.outcomes[outcome]++;
		check(w, &ref, first, pages, before);
		ct_put(t, &ref);
		sched_yield(); /* so that mappings change as often. Beside a busy process it takes a whole time slice. */
	}
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct ct_thread t;

	if (ct_open(w->run->cache, &t)) {
		w->got.got.failed++;
		return NULL;
	}
	use(w, &t);
	ct_close(&t);
	return NULL;
}

struct ct_firsts ct_first(struct ct_run run, struct ct_versions *versions)
{
	struct worker *w = calloc((size_t)run.threads, sizeof(*w));
	struct ct_firsts sum = {0};

	for (int t = 0; t < run.threads; t++) {
		w[t].run = &run;
		w[t].versions = versions;
		w[t].seed = (unsigned)t + 1;
		pthread_create(&w[t].thread, NULL, work, &w[t]);
	}
	for (int t = 0; t < run.threads; t++) {
		pthread_join(w[t].thread, NULL);
		for (int o = 0; o < 4; o++)
			sum.got.outcomes[o] += w[t].got.got.outcomes[o];
		sum.got.failed += w[t].got.got.failed;
		sum.got.stale += w[t].got.got.stale;
		sum.got.wrong += w[t].got.got.wrong;
		sum.first += w[t].got.first;
		sum.old += w[t].got.old;
	}
	free(w);
	return sum;
}
