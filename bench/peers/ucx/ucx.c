/* UCX's registration cache (libucs 1.13, as Debian 12 has it) as a peer: see ../peer.h. */
#include "../peer.h"
#include <ucm/api/ucm.h>
#include <ucs/memory/rcache.h>

static int slow;
static double bytes;

static ucs_status_t reg(void *c, ucs_rcache_t *r, void *arg, ucs_rcache_region_t *g, uint16_t flags)
{
	(void)c, (void)r, (void)arg, (void)flags;
	if (__atomic_load_n(&slow, __ATOMIC_RELAXED))
		usleep(20000);
	bytes += (double)(g->super.end - g->super.start);
	return UCS_OK;
}

static void dereg(void *c, ucs_rcache_t *r, ucs_rcache_region_t *g) { (void)c, (void)r, (void)g; }

static void dump(void *c, ucs_rcache_t *r, ucs_rcache_region_t *g, char *b, size_t n)
{
	(void)c, (void)r, (void)g, (void)n;
	*b = 0;
}

static ucs_rcache_ops_t ops = {.mem_reg = reg, .mem_dereg = dereg, .dump_region = dump};
static ucs_rcache_t *cache;

static ucs_rcache_region_t *get(char *addr, size_t len)
{
	ucs_rcache_region_t *r;

	if (ucs_rcache_get(cache, addr, len, PROT_READ | PROT_WRITE, NULL, &r) != UCS_OK)
		abort();
	return r;
}

static void use(char *addr, size_t len) { ucs_rcache_region_put(cache, get(addr, len)); }

static void chase(struct hitter *h, const unsigned *order, long iterations)
{
	size_t dep = 0;

	for (unsigned j = 0; iterations > 0; iterations--) {
		char *addr = h->base + order[j] * STRIDE;
		ucs_rcache_region_t *r;

		if (++j == h->n)
			j = 0;
		r = get(addr + dep, LENGTH - dep);
		dep = r->super.end & 1; /* always 0 */
		ucs_rcache_region_put(cache, r);
	}
}

static int stop;

static void *registrar(void *base)
{
	run_on(1);
	__atomic_store_n(&slow, 1, __ATOMIC_RELAXED);
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

int main(int argc, char **argv)
{
	unsigned n = argc > 2 ? (unsigned)atoi(argv[2]) : 16;
	char *base = reserve((size_t)n * STRIDE + (64 << 20));
	ucs_rcache_params_t p;
	double from;

	memset(&p, 0, sizeof(p));
	p.region_struct_size = sizeof(ucs_rcache_region_t);
	p.ops = &ops;
	p.ucm_events = UCM_EVENT_VM_UNMAPPED;
	p.ucm_event_priority = 1000;
	p.max_regions = p.max_size = p.max_unreleased = (size_t)-1;
	p.alignment = 4096;
	p.max_alignment = 4096;
	if (argc < 2 || ucs_rcache_create(&p, "peer", NULL, &cache) != UCS_OK)
		return 1;
	if (!strcmp(argv[1], "stall")) {
		stall(base);
		return 0;
	}
	if (!strcmp(argv[1], "window")) {
		for (size_t i = 0; i < 1000; i++)
			use(base + i * 32768, 65536);
		printf("%.0f\n", bytes);
		return 0;
	}
	from = now();
	for (size_t i = 0; i < n; i++)
		use(base + i * STRIDE, LENGTH);
	if (!strcmp(argv[1], "miss"))
		printf("%.1f\n", (now() - from) / n);
	if (!strcmp(argv[1], "hit"))
		hit(base, n, (unsigned)atoi(argv[3]), atol(argv[4]));
	if (!strcmp(argv[1], "invalidate")) {
		from = now();
		munmap(base, (size_t)n * STRIDE);
		use(reserve(LENGTH), LENGTH); /* the next get deregisters what is gone */
		printf("%.1f\n", (now() - from) / n);
	}
	return 0;
}
