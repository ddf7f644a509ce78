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

static void unmapped(char *addr, size_t len) { (void)addr, (void)len; } /* the next get notices */
static void slow_down(void) { __atomic_store_n(&slow, 1, __ATOMIC_RELAXED); }
static double bytes_registered(void) { return bytes; }

int main(int argc, char **argv)
{
	ucs_rcache_params_t p;

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
	measure(argv[1], argc > 2 ? (unsigned)atoi(argv[2]) : 16, argc > 3 ? (unsigned)atoi(argv[3]) : 1,
		argc > 4 ? atol(argv[4]) : 0);
	return 0;
}
