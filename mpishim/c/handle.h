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

struct pw_handle {
	struct v_mr mr;
	struct pwt_ref ref;
	uint64_t start_ticks;
	uint64_t path_ticks; /* that taking it cost; 0: not measured */
	uint64_t seq; /* of the call that posted the buffer */
	uint64_t op;
	const struct pw_site *site;
	uint32_t domain;
	uint32_t access;
	uint32_t next; /* index + 1 of the next free one */
	uint32_t taken;
};

extern struct pw_handle *pw_handles; /* NULL before the first */

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
	uintptr_t offset = (uintptr_t)mr - (uintptr_t)pw_handles;

	return pw_handles && offset < PW_HANDLES * sizeof(struct pw_handle) ? (struct pw_handle *)mr : NULL;
}

#endif
