#include "stress.h"

#include <pthread.h>
#include <stdlib.h>

enum { HELD = 8, PAGE = 4096 };

struct worker {
	pthread_t thread;
	const struct ct_run *run;
	unsigned seed;
	struct ct_result got;
	void (*what)(struct worker *, struct ct_thread *);
};

/* References that one thread takes and another drops. */
static struct pwt_ref parcel;
static int parcel_full; /* 0 empty, 1 busy, 2 full */

static int dead(const struct ct_run *run, const struct pwt_ref *ref)
{
	return !__atomic_load_n(&run->alive[ref->desc->handle], __ATOMIC_ACQUIRE);
}

static void check(struct worker *w, const struct pwt_ref *ref, const char *addr, size_t len)
{
	struct pwt_desc *d = ref->desc;

	if (dead(w->run, ref))
		w->got.stale++;
	if (d->low > (uintptr_t)addr || d->high < (uintptr_t)addr + len || d->keys != ref->keys)
		w->got.wrong++;
}

static void pass_on(struct worker *w, struct ct_thread *t, struct pwt_ref *ref)
{
	int empty = 0, full = 2;

	if (__atomic_compare_exchange_n(&parcel_full, &empty, 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
		parcel = *ref;
		__atomic_store_n(&parcel_full, 2, __ATOMIC_RELEASE);
		return;
	}
	ct_put(t, ref);
	if (__atomic_compare_exchange_n(&parcel_full, &full, 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
		struct pwt_ref other = parcel;

		__atomic_store_n(&parcel_full, 0, __ATOMIC_RELEASE);
		if (dead(w->run, &other))
			w->got.stale++;
		ct_put(t, &other);
	}
}

/* Takes and drops random ranges. */
static void use(struct worker *w, struct ct_thread *t)
{
	const struct ct_run *run = w->run;
	struct pwt_ref held[HELD];
	int n = 0;

	for (unsigned long i = 0; i < run->iterations; i++) {
		unsigned r = (unsigned)rand_r(&w->seed), first = r % run->pages, len = 1 + r / 64 % 4;
		char *addr = run->base + (size_t)first * PAGE + (r & 1);
		size_t bytes = (size_t)len * PAGE - (r & 1);
		int got;

		if (first + len > run->pages)
			continue;
		if (r >> 20 & 1)
			got = ct_is_registered(t, addr, bytes, 1, &held[n]) ? 0 : -1;
		else
			got = ct_get(t, addr, bytes, 1, &held[n]);
		if (got < 0) {
			w->got.failed++;
			continue;
		}
		check(w, &held[n], addr, bytes);
		w->got.outcomes[got]++;
		if (++n == HELD || r >> 24 & 1) {
			while (n > 0) {
				n--;
				if (dead(run, &held[n]))
					w->got.stale++;
				pass_on(w, t, &held[n]);
			}
		}
	}
	while (n > 0)
		ct_put(t, &held[--n]);
}

/* Hits what the others invalidate. */
static void race(struct worker *w, struct ct_thread *t)
{
	const struct ct_run *run = w->run;
	struct pwt_ref ref;

	for (unsigned long i = 0; i < run->iterations; i++) {
		for (int n = rand_r(&w->seed) % 60; n > 0; n--) {
			int inside = !(rand_r(&w->seed) % 7);
			char *from = run->base + (size_t)(rand_r(&w->seed) % 2) * 4 * PAGE + inside * PAGE;

			if (ct_get(t, from, inside ? PAGE : 3 * PAGE, 1, &ref) < 0)
				w->got.failed++;
			else
				ct_put(t, &ref);
		}
		if (ct_invalidate(run->cache, run->base + (size_t)(rand_r(&w->seed) % 2) * 4 * PAGE, PAGE))
			w->got.failed++;
	}
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct ct_thread t;

	if (ct_open(w->run->cache, &t)) {
		w->got.failed++;
		return NULL;
	}
	w->what(w, &t);
	ct_close(&t);
	return NULL;
}

static struct ct_result run_threads(struct ct_run run, void (*what)(struct worker *, struct ct_thread *))
{
	struct worker *w = calloc((size_t)run.threads, sizeof(*w));
	struct ct_result sum = {0};

	for (int t = 0; t < run.threads; t++) {
		w[t].run = &run;
		w[t].seed = (unsigned)t + 1;
		w[t].what = what;
		pthread_create(&w[t].thread, NULL, work, &w[t]);
	}
	for (int t = 0; t < run.threads; t++) {
		pthread_join(w[t].thread, NULL);
		for (int o = 0; o < 4; o++)
			sum.outcomes[o] += w[t].got.outcomes[o];
		sum.failed += w[t].got.failed;
		sum.stale += w[t].got.stale;
		sum.wrong += w[t].got.wrong;
	}
	free(w);
	return sum;
}

struct ct_result ct_race(struct ct_run run) { return run_threads(run, race); }

struct ct_result ct_stress(struct ct_run run)
{
	struct ct_result sum = run_threads(run, use);
	struct ct_thread t;

	if (parcel_full) {
		if (ct_open(run.cache, &t))
			abort();
		ct_put(&t, &parcel);
		ct_close(&t);
		parcel_full = 0;
	}
	return sum;
}

static int give_up(struct ct_thread *t, uintptr_t cache, char *page)
{
	struct pwt_ref ref;
	uint32_t slot;

	if (ct_get(t, page, PAGE, 1, &ref) < 0)
		return -1;
	slot = (uint32_t)(ref.desc - pwt_desc(t->local->table, 0));
	pwt_count(t->local, slot, 1);
	ct_put(t, &ref);
	if (ct_invalidate(cache, page, PAGE))
		return -1;
	pwt_undo(t->local, slot);
	return 0;
}

/* A hit that counts its reference just before the page is invalidated, and finds the entry closed. */
int ct_give_up(uintptr_t cache, char *page)
{
	struct ct_thread t;
	int failed;

	if (ct_open(cache, &t))
		return -1;
	failed = give_up(&t, cache, page);
	ct_close(&t);
	return failed;
}

static int pipeline(struct ct_thread *t, char *buffer, size_t len, size_t piece)
{
	struct pwt_ref ref;
	int posts = 0;

	if (ct_is_registered(t, buffer, len, 1, &ref)) {
		posts++; /* ibv_post_send of all of it */
		ct_put(t, &ref);
		return posts;
	}
	for (size_t at = 0; at < len; at += piece) {
		size_t n = len - at < piece ? len - at : piece;

		if (ct_get(t, buffer + at, n, 1, &ref) < 0)
			return -1;
		posts++; /* ibv_post_send of the piece */
		ct_put(t, &ref);
	}
	return posts;
}

/* The pipelined protocol of "New proposal for memory management" (OpenFabrics list, 2009).
 * Returns the number of posts. */
int ct_pipeline(uintptr_t cache, char *buffer, size_t len, size_t piece)
{
	struct ct_thread t;
	int posts;

	if (ct_open(cache, &t))
		return -1;
	posts = pipeline(&t, buffer, len, piece);
	ct_close(&t);
	return posts;
}
