/* Hits through regcache/table.h as a peer: see ../peer.h. */
#include "peer.h" /* first: it asks for sched_setaffinity */

#include "ctable.h"
#include "_cgo_export.h"

static uintptr_t cache;
static __thread struct ct_thread self; /* never closed: the process ends with its measurement */

static struct ct_thread *opened(void)
{
	if (!self.local && ct_open(cache, &self))
		abort();
	return &self;
}

static void use(char *addr, size_t len)
{
	struct ct_thread *t = opened();
	struct pwt_ref ref;

	if (ct_get(t, addr, len, 3, &ref) < 0)
		abort();
	ct_put(t, &ref);
}

static void chase(struct hitter *h, const unsigned *order, long iterations)
{
	struct ct_thread t = *opened();
	size_t dep = 0;

	for (unsigned j = 0; iterations > 0; iterations--) {
		char *addr = h->base + order[j] * STRIDE;
		struct pwt_ref ref;

		if (++j == h->n)
			j = 0;
		if (ct_get(&t, addr + dep, LENGTH - dep, 3, &ref) < 0)
			abort();
		dep = ref.keys >> 63; /* always 0 */
		ct_put(&t, &ref);
	}
}

static void unmapped(char *addr, size_t len) { ct_invalidate(cache, addr, len); }
static void slow_down(void) { slow_registrations(1); }
static double bytes_registered(void) { return registered_bytes(); }

struct run {
	char *test;
	int n, threads, iterations;
};

/* A C program would not measure on a goroutine's thread either. */
static void *run_thread(void *arg)
{
	struct run *r = arg;

	measure(r->test, r->n ? (unsigned)r->n : 16, (unsigned)r->threads, r->iterations);
	return NULL;
}

void run(uintptr_t c, char *test, int n, int threads, int iterations)
{
	struct run r = {test, n, threads, iterations};
	pthread_t t;

	cache = c;
	pthread_create(&t, NULL, run_thread, &r);
	pthread_join(t, NULL);
	fflush(stdout);
}
