/* The pool of pw_mr; see mr.h. */
#define _GNU_SOURCE
#include <sys/mman.h>

#include "mr.h"

struct pw_mr *pw_mrs;

static uint64_t head;  /* tag << 32 | index + 1 of the first free one */
static uint32_t fresh; /* how many were ever taken */

static struct pw_mr *pool(void)
{
	struct pw_mr *p = __atomic_load_n(&pw_mrs, __ATOMIC_ACQUIRE), *none = NULL;

	if (pw_likely(p != NULL))
		return p;
	p = mmap(NULL, PW_MRS * sizeof *p, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	if (__atomic_compare_exchange_n(&pw_mrs, &none, p, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return p;
	munmap(p, PW_MRS * sizeof *p);
	return none;
}

struct pw_mr *pw_mr_pop(void)
{
	struct pw_mr *p = pool();
	uint64_t h = __atomic_load_n(&head, __ATOMIC_ACQUIRE), next;
	uint32_t i;

	if (!p)
		return NULL;
	while ((uint32_t)h) {
		/* Another thread may take it meanwhile. Its next is then garbage, and the tag has changed. */
		next = ((h >> 32) + 1) << 32 | __atomic_load_n(&p[(uint32_t)h - 1].next, __ATOMIC_RELAXED);
		if (__atomic_compare_exchange_n(&head, &h, next, 1, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			return &p[(uint32_t)h - 1];
	}
	i = __atomic_load_n(&fresh, __ATOMIC_RELAXED);
	do
		if (i == PW_MRS)
			return NULL;
	while (!__atomic_compare_exchange_n(&fresh, &i, i + 1, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	return &p[i];
}

void pw_mr_push(struct pw_mr *g)
{
	uint64_t h = __atomic_load_n(&head, __ATOMIC_RELAXED), first;

	do {
		__atomic_store_n(&g->next, (uint32_t)h, __ATOMIC_RELAXED);
		first = ((h >> 32) + 1) << 32 | (uint64_t)(g - __atomic_load_n(&pw_mrs, __ATOMIC_ACQUIRE) + 1);
	} while (!__atomic_compare_exchange_n(&head, &h, first, 1, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
}

uint32_t pw_mr_taken(void)
{
	const struct pw_mr *p = __atomic_load_n(&pw_mrs, __ATOMIC_ACQUIRE);
	uint32_t n = 0;

	for (uint32_t i = 0; p && i < __atomic_load_n(&fresh, __ATOMIC_RELAXED); i++)
		n += p[i].taken;
	return n;
}
