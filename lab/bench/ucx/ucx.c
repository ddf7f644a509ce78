//go:build ucx

#include "ucx.h"
#include "_cgo_export.h"
#include <stdlib.h>
#include <sys/mman.h>
#include <ucm/api/ucm.h>
#include <ucs/memory/rcache.h>

struct region {
	ucs_rcache_region_t super;
	uint64_t handle;
};

struct cache { ucs_rcache_t *rc; };

static ucs_status_t on_register(void *context, ucs_rcache_t *rc, void *arg, ucs_rcache_region_t *r, uint16_t flags)
{
	struct region *region = (struct region *)r;
	region->handle = ucxRegister(r->super.start, r->super.end);
	return region->handle ? UCS_OK : UCS_ERR_NO_MEMORY;
}

static void on_deregister(void *context, ucs_rcache_t *rc, ucs_rcache_region_t *r)
{
	ucxDeregister(((struct region *)r)->handle);
}

static void on_dump(void *context, ucs_rcache_t *rc, ucs_rcache_region_t *r, char *text, size_t max) { *text = 0; }

static ucs_rcache_ops_t ops = { .mem_reg = on_register, .mem_dereg = on_deregister, .dump_region = on_dump };

struct cache *cache_new(void)
{
	struct cache *c = calloc(1, sizeof(*c));
	ucs_rcache_params_t p = {
		.region_struct_size = sizeof(struct region),
		.alignment = 64,
		.max_alignment = 4096,
		.ucm_events = UCM_EVENT_VM_UNMAPPED,
		.ucm_event_priority = 1000,
		.ops = &ops,
		.flags = UCS_RCACHE_FLAG_PURGE_ON_FORK,
		.max_regions = (unsigned long)-1,
		.max_size = (size_t)-1,
		.max_unreleased = (size_t)-1,
	};
	if (c && ucs_rcache_create(&p, "peer", NULL, &c->rc) == UCS_OK)
		return c;
	free(c);
	return NULL;
}

int cache_get(struct cache *c, void *addr, size_t len, void **region, uint64_t *handle)
{
	ucs_rcache_region_t *r;
	ucs_status_t status = ucs_rcache_get(c->rc, addr, len, PROT_READ | PROT_WRITE, NULL, &r);
	if (status != UCS_OK)
		return status;
	*region = r;
	*handle = ((struct region *)r)->handle;
	return 0;
}

void cache_put(struct cache *c, void *region) { ucs_rcache_region_put(c->rc, region); }

void cache_free(struct cache *c)
{
	ucs_rcache_destroy(c->rc);
	free(c);
}
