#ifndef PEERS_UCX_H
#define PEERS_UCX_H
#include <stddef.h>
#include <stdint.h>

struct cache;
struct cache *cache_new(void);
// cache_get returns 0 and the handle that the provider gave, or a ucs_status_t.
int cache_get(struct cache *c, void *addr, size_t len, void **region, uint64_t *handle);
void cache_put(struct cache *c, void *region);
void cache_free(struct cache *c);
#endif
