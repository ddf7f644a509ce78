/* Hits through regcache/table.h as a peer: see ../peer.h. */
#include "../peer.h" /* first: it asks for sched_setaffinity */

#include "loops.h"

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

static int stop;

static void *registrar(void *base)
{
	run_on(1);
	slow_registrations(1);
	for (int i = 0; i < 10; i++) {
		use((char *)base + (size_t)(i + 1) * STRIDE, LENGTH);
		usleep(5000);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void stall(char *base)
{
	struct worst hits = {0}, nothing = {0};
	pthread_t t;

	use(base, LENGTH);
	run_on(0);
	pthread_create(&t, NULL, registrar, base);
	undisturbed();
	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
		double a = now(), b, c;

		use(base, LENGTH);
		b = now();
		c = now();
		note(&hits, b - a);
		note(&nothing, c - b);
	}
	pthread_join(t, NULL);
	printf("%.0f %ld %ld %.0f %ld %ld\n", hits.ns, hits.above, hits.n, nothing.ns, nothing.above, nothing.n);
}

static char *test;
static int arg[3];

/* A C program would not measure on a goroutine's thread either. */
static void *measure(void *unused)
{
	unsigned n = arg[0] ? (unsigned)arg[0] : 16;
	char *base = reserve((size_t)n * STRIDE + (64 << 20));
	double from;

	(void)unused;
	if (!strcmp(test, "stall")) {
		stall(base);
		return NULL;
	}
	if (!strcmp(test, "window")) {
		for (size_t i = 0; i < 1000; i++)
			use(base + i * 32768, 65536);
		printf("%.0f\n", registered_bytes());
		return NULL;
	}
	from = now();
	for (size_t i = 0; i < n; i++)
		use(base + i * STRIDE, LENGTH);
	if (!strcmp(test, "miss"))
		printf("%.1f\n", (now() - from) / n);
	if (!strcmp(test, "hit"))
		hit(base, n, (unsigned)arg[1], arg[2]);
	if (!strcmp(test, "invalidate")) {
		from = now();
		munmap(base, (size_t)n * STRIDE);
		ct_invalidate(cache, base, (size_t)n * STRIDE);
		use(reserve(LENGTH), LENGTH);
		printf("%.1f\n", (now() - from) / n);
	}
	return NULL;
}

void run(uintptr_t c, char *name, int a, int b, int d)
{
	pthread_t t;

	cache = c;
	test = name;
	arg[0] = a;
	arg[1] = b;
	arg[2] = d;
	pthread_create(&t, NULL, measure, NULL);
	pthread_join(t, NULL);
	fflush(stdout);
}
