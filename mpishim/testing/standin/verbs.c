/*
 * A stand-in for libibverbs: registrations are counted, and nothing is pinned. As with a device, registered
 * memory is there: what only compares pages relies on that. A leak fails ibv_dealloc_pd, as it does in the kernel.
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

struct mr { /* struct ibv_mr */
	void *context, *pd, *addr;
	size_t length;
	uint32_t handle, lkey, rkey;
	uint32_t state; /* atomic */
};
enum { FREE, LIVE, TAKEN }; /* TAKEN: its words are being written, and may be another's so far */

static uint32_t keys;
#define MRS 4096
static struct mr mrs[MRS];

#define PAGE 4096ul
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

int standin_leaves_pages; /* to measure the path to a registration, which costs as much as nothing then */

int standin_peer_memory; /* a device with memory of its own, whose addresses have no pages */
long standin_attempts;   /* registrations that were asked for */

#define ON_DEMAND 0x40u   /* IBV_ACCESS_ON_DEMAND */
#define REMOTE_READ 0x4u  /* IBV_ACCESS_REMOTE_READ */

static int bring_in(void *addr, size_t bytes, unsigned access)
{
	uintptr_t start = (uintptr_t)addr & ~(PAGE - 1), end = ((uintptr_t)addr + bytes + PAGE - 1) & ~(PAGE - 1);

	if (!madvise((void *)start, end - start, MADV_POPULATE_WRITE) || standin_peer_memory)
		return 1;
	if (errno != EINVAL) /* which says that its rights forbid it */
		return 0;
	errno = EFAULT;
	return !(access & ~REMOTE_READ) && !madvise((void *)start, end - start, MADV_POPULATE_READ);
}

static struct mr *make(void *pd, void *addr, size_t bytes, unsigned access)
{
	uint32_t key = __atomic_add_fetch(&keys, 1, __ATOMIC_RELAXED);

	__atomic_add_fetch(&standin_attempts, 1, __ATOMIC_RELAXED);
	if (!standin_leaves_pages && !(access & ON_DEMAND) && !bring_in(addr, bytes, access))
		return NULL;
	for (uint32_t i = 0; i < MRS; i++) {
		struct mr *m = &mrs[(key + i) % MRS];
		uint32_t is = FREE;

		if (!__atomic_compare_exchange_n(&m->state, &is, TAKEN, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			continue;
		__atomic_store_n(&m->pd, pd, __ATOMIC_RELAXED);
		m->context = pd, m->addr = addr, m->length = bytes, m->handle = m->lkey = m->rkey = key;
		__atomic_store_n(&m->state, LIVE, __ATOMIC_RELEASE);
		return m;
	}
	errno = ENOMEM;
	return NULL;
}

void *ibv_reg_mr_iova2(void *pd, void *addr, size_t bytes, uint64_t iova, unsigned access)
{
	return (void)iova, make(pd, addr, bytes, access);
}

void *ibv_reg_mr(void *pd, void *addr, size_t bytes, int access)
{
	return ibv_reg_mr_iova2(pd, addr, bytes, (uintptr_t)addr, (unsigned)access);
}

struct mr_attr { /* the beginning of struct ibv_mr_init_attr */
	size_t bytes;
	int access;
	uint64_t comp_mask, iova;
	void *addr;
};

void *ibv_reg_mr_ex(void *pd, struct mr_attr *a)
{
	if (!a->bytes) {
		errno = EINVAL;
		return NULL;
	}
	if (a->comp_mask & 4) /* IBV_REG_MR_MASK_FD: of a dma-buf, so no memory of the process */
		return make(pd, NULL, a->bytes, (unsigned)a->access | ON_DEMAND);
	return make(pd, a->addr, a->bytes, (unsigned)a->access);
}

int ibv_dereg_mr(struct mr *m)
{
	uint32_t is = LIVE;

	if (m < mrs || m >= mrs + MRS || !__atomic_compare_exchange_n(&m->state, &is, FREE, 0, __ATOMIC_ACQ_REL,
								      __ATOMIC_RELAXED))
		abort(); /* deregistered twice, or not ours */
	return 0;
}

/* Only what is nobody else's comes here. */
int ibv_rereg_mr(struct mr *m, int flags, void *pd, void *addr, size_t bytes, int access)
{
	(void)m, (void)flags, (void)pd, (void)addr, (void)bytes, (void)access;
	errno = EOPNOTSUPP;
	return -1;
}

/* Whether this is a registration of ours, and no handle of somebody between. */
int standin_owns(const struct mr *m) { return m >= mrs && m < mrs + MRS; }

/* Whether an adapter would accept the key of a registration. */
int standin_is_live(const struct mr *m)
{
	for (uint32_t i = 0; i < MRS; i++)
		if (__atomic_load_n(&mrs[i].state, __ATOMIC_ACQUIRE) == LIVE && mrs[i].lkey == m->lkey)
			return 1;
	return 0;
}

int ibv_dealloc_pd(void *pd)
{
	for (uint32_t i = 0; i < MRS; i++)
		if (__atomic_load_n(&mrs[i].state, __ATOMIC_ACQUIRE) == LIVE && __atomic_load_n(&mrs[i].pd, __ATOMIC_RELAXED) == pd)
			return EBUSY;
	return 0;
}

int ibv_close_device(void *context) { return (void)context, 0; }
