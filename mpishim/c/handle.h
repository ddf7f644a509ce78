/*
 * Handles: what the transport gets for a managed registration. It takes them for
 * struct ibv_mr, of which each begins with one.
 *
 * They come from a fixed pool, so that a pointer says whether it is ours; free
 * ones are a stack whose head carries a tag against ABA, one CAS to take or give
 * back. A thread keeps some to itself and mostly needs none. No system call, no
 * allocation, no lock.
 */
#ifndef PINWHEEL_HANDLE_H
#define PINWHEEL_HANDLE_H

#include "abi.h" /* struct v_mr: struct ibv_mr */
#include "shim.h"

/* What a handle stands for. */
struct pw_registered {
	struct v_mr mr;      /* what the transport sees */
	struct pwt_ref ref;  /* desc NULL: it is not the cache's, but plain */
	union {
		struct pw_cause call; /* that the memory was given to */
		void *plain;          /* the registration of libibverbs */
	};
	uint64_t start_ticks;
	uint64_t path_ticks; /* that taking it cost; 0: not measured */
	uint32_t domain;
	uint32_t access;
};

struct pw_handle {
	struct pw_registered is; /* first: its address is the handle's */
	uint32_t next;           /* atomic: index + 1 of the next free one */
	uint32_t taken;          /* of who holds it: the transport, or the thread that keeps it */
};
_Static_assert(offsetof(struct pw_handle, is.mr) == 0, "taken for struct ibv_mr");
_Static_assert(sizeof(struct pw_handle) == 128, "two cache lines: a third costs a hit 5 ns");

extern struct pw_handle *pw_handles; /* atomic: NULL before the first */

struct pw_handle *pw_handle_pop(void); /* NULL: all in use, or no memory */
void pw_handle_push(struct pw_handle *h);

/* NULL: all in use, or no memory. */
static inline struct pw_handle *pw_handle_take(struct pw_thread *t)
{
	struct pw_handle *h = pw_likely(t->spares) ? t->spare[--t->spares] : pw_handle_pop();

	if (pw_likely(h != NULL))
		h->taken = 1;
	return h;
}

static inline void pw_handle_give(struct pw_thread *t, struct pw_handle *h)
{
	h->taken = 0;
	if (pw_likely(t && t->spares < PW_SPARES))
		t->spare[t->spares++] = h;
	else
		pw_handle_push(h);
}

static inline struct pw_handle *pw_handle_of(void *mr)
{
	const struct pw_handle *all = __atomic_load_n(&pw_handles, __ATOMIC_ACQUIRE);

	return all && (uintptr_t)mr - (uintptr_t)all < PW_HANDLES * sizeof(struct pw_handle) ? (struct pw_handle *)mr : NULL;
}

#endif
