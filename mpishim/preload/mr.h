/*
 * Handles: what the transport gets for a managed registration. It takes them for
 * struct ibv_mr, of which each begins with one.
 *
 * They come from a fixed pool, so that a pointer says whether it is ours; free
 * ones are a stack whose head carries a tag against ABA, one CAS to take or give
 * back. A thread keeps some to itself and mostly needs none. No system call, no
 * allocation, no lock.
 */
#ifndef PINWHEEL_MR_H
#define PINWHEEL_MR_H

#include "abi.h" /* struct v_mr: struct ibv_mr */
#include "core.h"

/* What a handle stands for. */
struct pw_mr_state {
	struct v_mr mr;      /* what the transport sees */
	struct pwt_ref ref;  /* desc NULL: it is not the cache's, but plain */
	union {
		struct pw_call_id call; /* that the memory was given to */
		void *plain;          /* the registration of libibverbs */
	};
	uint64_t start_ticks;
	uint64_t path_ticks; /* that taking it cost; 0: not measured */
	uint32_t domain;
	uint32_t access;
};

struct pw_mr {
	struct pw_mr_state state; /* first: its address is the handle's */
	uint32_t next;           /* atomic: index + 1 of the next free one */
	uint32_t taken;          /* of who holds it: the transport, or the thread that keeps it */
};
_Static_assert(offsetof(struct pw_mr, state.mr) == 0, "taken for struct ibv_mr");
_Static_assert(sizeof(struct pw_mr) == 128, "two cache lines: a third costs a hit 5 ns");

extern struct pw_mr *pw_mrs; /* atomic: NULL before the first */

struct pw_mr *pw_mr_pop(void); /* NULL: all in use, or no memory */
void pw_mr_push(struct pw_mr *h);

/* NULL: all in use, or no memory. */
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
