#include "ctest.h"

#include <pthread.h>
#include <stdlib.h>

enum { HELD = 8, PAGE = 4096 };

struct worker {
	pthread_t thread;
	const struct ctest_run *run;
	unsigned seed;
	struct ctest_result got;
};

/* References that one thread takes and another drops. */
static struct pwt_ref parcel;
static int parcel_full; /* 0 empty, 1 busy, 2 full */

static int dead(const struct ctest_run *run, const struct pwt_ref *ref)
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

static void pass_on(struct worker *w, struct pwt_front *f, struct pwt_ref *ref)
{
	int empty = 0, full = 2;

	if (__atomic_compare_exchange_n(&parcel_full, &empty, 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
		parcel = *ref;
		__atomic_store_n(&parcel_full, 2, __ATOMIC_RELEASE);
		return;
	}
	pwc_put(f, ref);
	if (__atomic_compare_exchange_n(&parcel_full, &full, 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
		struct pwt_ref other = parcel;

		__atomic_store_n(&parcel_full, 0, __ATOMIC_RELEASE);
		if (dead(w->run, &other))
			w->got.stale++;
		pwc_put(f, &other);
	}
}

static void *work(void *arg)
{
	struct worker *w = arg;
	const struct ctest_run *run = w->run;
	struct pwt_front *f = pwc_thread(run->cache);
	struct pwt_ref held[HELD];
	int n = 0;

	for (unsigned long i = 0; f && i < run->iterations; i++) {
		unsigned r = (unsigned)rand_r(&w->seed), first = r % run->pages, len = 1 + r / 64 % 4;
		char *addr = run->base + (size_t)first * PAGE + (r & 1);
		size_t bytes = (size_t)len * PAGE - (r & 1);
		int got;

		if (first + len > run->pages)
			continue;
		if (r >> 20 & 1)
			got = pwc_is_registered(f, addr, bytes, 1, &held[n]) ? PWC_HIT : -1;
		else
			got = pwc_get(f, addr, bytes, 1, &held[n]);
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
				pass_on(w, f, &held[n]);
			}
		}
	}
	while (n > 0)
		pwc_put(f, &held[--n]);
	return NULL;
}

/* Hits what the others invalidate. */
static void *race(void *arg)
{
	struct worker *w = arg;
	const struct ctest_run *run = w->run;
	struct pwt_front *f = pwc_thread(run->cache);
	struct pwt_ref ref;

	for (unsigned long i = 0; f && i < run->iterations; i++) {
		for (int n = rand_r(&w->seed) % 60; n > 0; n--) {
			int inside = !(rand_r(&w->seed) % 7);
			char *from = run->base + (size_t)(rand_r(&w->seed) % 2) * 4 * PAGE + inside * PAGE;

			if (pwc_get(f, from, inside ? PAGE : 3 * PAGE, 1, &ref) < 0)
				w->got.failed++;
			else
				pwc_put(f, &ref);
		}
		if (pwc_invalidate(run->cache, run->base + (size_t)(rand_r(&w->seed) % 2) * 4 * PAGE, PAGE))
			w->got.failed++;
	}
	return NULL;
}

static struct ctest_result run_threads(struct ctest_run run, void *(*what)(void *))
{
	struct worker *w = calloc((size_t)run.threads, sizeof(*w));
	struct ctest_result sum = {0};

	for (int t = 0; t < run.threads; t++) {
		w[t].run = &run;
		w[t].seed = (unsigned)t + 1;
		pthread_create(&w[t].thread, NULL, what, &w[t]);
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

struct ctest_result ctest_race(struct ctest_run run) { return run_threads(run, race); }

struct ctest_result ctest_stress(struct ctest_run run)
{
	struct ctest_result sum = run_threads(run, work);

	if (parcel_full) {
		pwc_put(pwc_thread(run.cache), &parcel);
		parcel_full = 0;
	}
	return sum;
}

/* A hit that counts its reference just before the page is invalidated, and finds the entry closed. */
int ctest_give_up(pwc_cache cache, char *page)
{
	struct pwt_front *f = pwc_thread(cache);
	struct pwt_ref ref;
	uint32_t slot;

	if (pwc_get(f, page, PAGE, 1, &ref) < 0)
		return -1;
	slot = (uint32_t)(ref.desc - pwt_desc(f->table, 0));
	pwt_count(f, slot, 1);
	pwc_put(f, &ref);
	if (pwc_invalidate(cache, page, PAGE))
		return -1;
	pwt_undo(f, slot);
	return 0;
}

/* The pipelined protocol of the 2009 proposal. Returns the number of posts. */
int ctest_pipeline(pwc_cache cache, char *buffer, size_t len, size_t piece)
{
	struct pwt_front *f = pwc_thread(cache);
	struct pwt_ref ref;
	int posts = 0;

	if (pwc_is_registered(f, buffer, len, 1, &ref)) {
		posts++; /* ibv_post_send of all of it */
		pwc_put(f, &ref);
		return posts;
	}
	for (size_t at = 0; at < len; at += piece) {
		size_t n = len - at < piece ? len - at : piece;

		if (pwc_get(f, buffer + at, n, 1, &ref) < 0)
			return -1;
		posts++; /* ibv_post_send of the piece */
		pwc_put(f, &ref);
	}
	return posts;
}
