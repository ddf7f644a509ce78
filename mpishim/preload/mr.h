/*
 * The memory regions that the transport gets for managed registrations. Each pw_mr begins with a
 * struct ibv_mr, which is all that the transport sees.
 *
 * They come from a fixed pool, so an address tells whether a region is ours. Free ones
 * form a stack whose head carries a tag against ABA; one CAS pops or pushes. A thread keeps
 * some free ones to itself and mostly needs no CAS. Nothing here makes a system call,
 * allocates or takes a lock.
 */
#ifndef PINWHEEL_MR_H
#define PINWHEEL_MR_H

#include "abi.h" /* struct v_mr: struct ibv_mr */
#include "process.h"

#define PW_ON_DEMAND 1u

/* The registration that a pw_mr stands for. */
struct pw_mr_state {
	struct v_mr mr;      /* the transport sees this */
	/* desc is NULL for a registration past the cache. For one on demand, id is PW_ON_DEMAND then, and keys when it was
	 * made, in ticks. */
	struct pwt_ref ref;
	struct pw_call_id call; /* the memory was passed to */
	uint64_t start_ticks; /* 0 if nobody is to hear of the use */
	union {
		uint64_t path_ticks; /* cost of the get; 0 if it was not measured */
		void *plain;         /* the registration of libibverbs past the cache */
	};
	uint32_t domain; /* pw_domain_tag */
	uint32_t access;
};

struct pw_mr {
	struct pw_mr_state state; /* must come first: the transport has its address */
	uint32_t next;           /* atomic: index + 1 of the next free one */
	uint32_t taken;          /* 1 while the transport has it */
};
_Static_assert(offsetof(struct pw_mr, state.mr) == 0, "taken for struct ibv_mr");
_Static_assert(sizeof(struct pw_mr) == 128, "two cache lines: a third costs a hit 5 ns");

extern struct pw_mr *pw_mrs; /* atomic: NULL before the first */

struct pw_mr *pw_mr_pop(void); /* NULL if all are in use or there is no memory */
void pw_mr_push(struct pw_mr *h);
uint32_t pw_mr_taken(void); /* how many the transport has now; for a moment at which nothing is registered */

/* NULL if all are in use or there is no memory. */
static inline struct pw_mr *pw_mr_alloc(struct pw_thread *t)
{
	struct pw_mr *h = pw_likely(t->free_mrs) ? t->free_mr[--t->free_mrs] : pw_mr_pop();

	if (pw_likely(h != NULL))
		h->taken = 1;
	return h;
}

static inline void pw_mr_free(struct pw_thread *t, struct pw_mr *h)
{
	h->taken = 0;
	if (pw_likely(t && t->free_mrs < PW_FREE_MRS))
		t->free_mr[t->free_mrs++] = h;
	else
		pw_mr_push(h);
}

static inline struct pw_mr *pw_mr_from(void *mr)
{
	const struct pw_mr *all = __atomic_load_n(&pw_mrs, __ATOMIC_ACQUIRE);

	return all && (uintptr_t)mr - (uintptr_t)all < PW_MRS * sizeof(struct pw_mr) ? (struct pw_mr *)mr : NULL;
}

#endif
