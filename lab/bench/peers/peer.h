/*
 * The measurements of the C peers. A peer defines the functions declared below over its
 * cache, and calls measure.
 *
 * Each measurement prints one line of numbers:
 *   hit N T ITERATIONS     ns per get+put and thread
 *   miss N                 ns per get that registers, and put
 *   invalidate N           ns per region to invalidate N of them and get one again
 *   window                 bytes registered by a 64 KiB window moving by 32 KiB, 1000 times
 *   stall                  while another thread registers for 20 ms: worst hit ns, hits above
 *                          10 us, hits; the same three for measuring nothing in between
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define LENGTH 65536ul          /* of a region */
#define STRIDE (LENGTH + 4096ul) /* between regions: neighbours never merge */

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static char *reserve(size_t n)
{
	char *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED) {
		perror("mmap");
		exit(1);
	}
	return p;
}

static void run_on(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu % (int)sysconf(_SC_NPROCESSORS_ONLN), &set);
	sched_setaffinity(0, sizeof(set), &set); /* without it the figures are only noisier */
}

/* Keeps other programs from the processor, where that is permitted. */
static void undisturbed(void)
{
	struct sched_param p = {.sched_priority = 1};

	sched_setscheduler(0, SCHED_FIFO, &p);
}

static unsigned *shuffled(unsigned n, unsigned seed)
{
	unsigned *order = malloc(n * sizeof(*order));

	for (unsigned i = 0; i < n; i++)
		order[i] = i;
	for (unsigned i = n - 1; i > 0; i--) {
		unsigned k = (unsigned)rand_r(&seed) % (i + 1), x = order[i];

		order[i] = order[k];
		order[k] = x;
	}
	return order;
}

struct hitter {
	pthread_t thread;
	pthread_barrier_t *start;
	char *base;
	unsigned n, cpu;
	long iterations;
	double ns;
};

/* Gets and puts; where the next access goes depends on the last result. */
static void chase(struct hitter *h, const unsigned *order, long iterations);
/* Gets and puts once. */
static void use(char *addr, size_t len);
/* The range was unmapped. */
static void unmapped(char *addr, size_t len);
/* From now on a registration takes 20 ms. */
static void slow_down(void);
static double bytes_registered(void);

static void *hit_thread(void *arg)
{
	struct hitter *h = arg;
	unsigned *order = shuffled(h->n, 77 + h->cpu);
	double from;

	run_on((int)h->cpu);
	chase(h, order, h->n < 100000 ? 2l * h->n : h->n); /* warm up */
	pthread_barrier_wait(h->start);
	from = now();
	chase(h, order, h->iterations);
	h->ns = (now() - from) / (double)h->iterations;
	free(order);
	return NULL;
}

static void hit(char *base, unsigned n, unsigned threads, long iterations)
{
	struct hitter h[16];
	pthread_barrier_t start;
	double sum = 0;

	pthread_barrier_init(&start, NULL, threads);
	for (unsigned t = 0; t < threads; t++) {
		h[t] = (struct hitter){0, &start, base, n, t, iterations, 0};
		pthread_create(&h[t].thread, NULL, hit_thread, &h[t]);
	}
	for (unsigned t = 0; t < threads; t++) {
		pthread_join(h[t].thread, NULL);
		sum += h[t].ns;
	}
	printf("%.3f\n", sum / threads);
}

/* The two columns of stall. */
struct worst {
	double ns;
	long above, n;
};

static void note(struct worst *w, double ns)
{
	w->n++;
	w->above += ns > 10e3;
	if (ns > w->ns)
		w->ns = ns;
}

static int stop;

static void *registrar(void *base)
{
	run_on(1);
	slow_down();
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

static void measure(const char *test, unsigned n, unsigned threads, long iterations)
{
	char *base = reserve((size_t)n * STRIDE + (64 << 20));
	double from;

	if (!strcmp(test, "stall")) {
		stall(base);
		return;
	}
	if (!strcmp(test, "window")) {
		for (size_t i = 0; i < 1000; i++)
			use(base + i * 32768, 65536);
		printf("%.0f\n", bytes_registered());
		return;
	}
	from = now();
	for (size_t i = 0; i < n; i++)
		use(base + i * STRIDE, LENGTH);
	if (!strcmp(test, "miss"))
		printf("%.1f\n", (now() - from) / n);
	if (!strcmp(test, "hit"))
		hit(base, n, threads, iterations);
	if (!strcmp(test, "invalidate")) {
		from = now();
		munmap(base, (size_t)n * STRIDE);
		unmapped(base, (size_t)n * STRIDE);
		use(reserve(LENGTH), LENGTH);
		printf("%.1f\n", (now() - from) / n);
	}
}
