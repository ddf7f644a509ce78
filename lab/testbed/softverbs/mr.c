/* Protection domains, memory regions and their keys. */
#include "sv.h"
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#define UNDERSTOOD \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

struct pd {
	struct ibv_pd pd;
	uint32_t children; /* regions, queue pairs, SRQs, address handles */
};

void sv_pd_count(struct ibv_pd *pd, int n) { __atomic_add_fetch(&((struct pd *)pd)->children, n, __ATOMIC_RELAXED); }

SV_API struct ibv_pd *ibv_alloc_pd(struct ibv_context *c)
{
	static uint32_t next;
	struct pd *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->pd.context = c;
	p->pd.handle = sv_me << 22 | (__atomic_add_fetch(&next, 1, __ATOMIC_RELAXED) & ((1u << 22) - 1));
	return &p->pd;
}

SV_API int ibv_dealloc_pd(struct ibv_pd *pd)
{
	if (__atomic_load_n(&((struct pd *)pd)->children, __ATOMIC_RELAXED))
		return EBUSY;
	free(pd);
	return 0;
}

/* Whether a process's key is good for this access. What it leads to may go at any time; see sv_ring_move. */
int sv_key_permits(uint32_t key, uint32_t proc, uint32_t pd, uint64_t addr, uint64_t len, uint32_t access)
{
	const struct sv_key *k = &sv->key[key >> 8 & (SV_KEYS - 1)];

	return key && key != SV_KEY_BUSY && __atomic_load_n(&k->key, __ATOMIC_ACQUIRE) == key && k->proc == proc &&
	       k->pd == pd && (k->access & access) == access && addr >= k->iova && len <= k->len &&
	       addr - k->iova <= k->len - len;
}

static struct sv_key *take_key(void)
{
	struct sv_key *k = NULL;

	sv_lock(&sv->alloc);
	for (uint32_t n = 0; n < SV_KEYS && !k; n++) {
		uint32_t i = ++sv->key_next & (SV_KEYS - 1);

		if (!i || sv->key[i].key) /* key 0 is nobody's */
			continue;
		k = &sv->key[i];
		k->proc = sv_me;
		__atomic_store_n(&k->key, SV_KEY_BUSY, __ATOMIC_RELEASE);
	}
	sv_unlock(&sv->alloc);
	return k;
}

SV_API struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t len, uint64_t iova, unsigned access)
{
	struct ibv_mr *m;
	struct sv_key *k;
	uint64_t begin;
	int err = 0;

	access &= ~(unsigned)IBV_ACCESS_OPTIONAL_RANGE;
	if (access & ~(unsigned)UNDERSTOOD)
		err = EOPNOTSUPP;
	else if (!len || (uintptr_t)addr + len < (uintptr_t)addr ||
		 (access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC) && !(access & IBV_ACCESS_LOCAL_WRITE)))
		err = EINVAL;
	if (err)
		return errno = err, NULL;
	m = calloc(1, sizeof(*m));
	k = m ? take_key() : NULL;
	if (!k) {
		free(m);
		return errno = ENOMEM, NULL;
	}
	k->pd = pd->handle, k->access = access, k->addr = (uintptr_t)addr, k->iova = iova, k->len = len;
	k->gen = (k->gen + 1) & 0xff;
	begin = sv_cost_begin(&sv_register_cost);
	if ((err = sv_pin(k, addr, len))) {
		if (sv_debug)
			sv_say("no pinning of %p, %zu bytes: %s", addr, len, strerror(err));
		__atomic_store_n(&k->key, 0, __ATOMIC_RELEASE);
		free(m);
		return errno = err, NULL;
	}
	sv_cost_pay(&sv_register_cost, begin, (uintptr_t)addr, len);
	sv_pd_count(pd, 1);
	sv_stats_region(len);
	m->context = pd->context, m->pd = pd, m->addr = addr, m->length = len;
	m->handle = (uint32_t)(k - sv->key), m->lkey = m->rkey = m->handle << 8 | k->gen;
	__atomic_store_n(&k->key, m->lkey, __ATOMIC_RELEASE);
	return m;
}

SV_API struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t len, uint64_t iova, int access)
{
	return ibv_reg_mr_iova2(pd, addr, len, iova, (unsigned)access);
}

SV_API struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t len, int access)
{
	return ibv_reg_mr_iova2(pd, addr, len, (uintptr_t)addr, (unsigned)access);
}

SV_API int ibv_dereg_mr(struct ibv_mr *m)
{
	struct sv_key *k = &sv->key[m->handle];
	uint64_t begin = sv_cost_begin(&sv_deregister_cost);
	int err;

	if (!__atomic_compare_exchange_n(&k->key, &(uint32_t){m->lkey}, SV_KEY_BUSY, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return EINVAL;
	if ((err = sv_unpin(k))) {
		__atomic_store_n(&k->key, m->lkey, __ATOMIC_RELEASE);
		return err;
	}
	sv_cost_pay(&sv_deregister_cost, begin, k->addr, k->len);
	__atomic_store_n(&k->key, 0, __ATOMIC_RELEASE);
	sv_pd_count(m->pd, -1);
	free(m);
	return 0;
}
