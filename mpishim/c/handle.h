/*
 * Handles: what the transport gets for a managed registration. It takes them for
 * struct ibv_mr, of which each begins with one.
 *
 * They come from a fixed pool, so that a pointer says whether it is ours; free
 * ones are a stack whose head carries a tag against ABA. Taking and giving back:
 * one CAS each; no system call, no allocation, no lock.
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
	uint64_t frames[PW_FRAMES];
	uint32_t domain;
	uint32_t access;
	uint32_t next; /* index + 1 of the next free one */
	uint32_t taken;
};

extern struct pw_handle *pw_handles; /* NULL before the first */

struct pw_handle *pw_handle_take(void); /* NULL: all in use, or no memory */
void pw_handle_give(struct pw_handle *h);

static inline struct pw_handle *pw_handle_of(void *mr)
{
	uintptr_t offset = (uintptr_t)mr - (uintptr_t)pw_handles;

	return pw_handles && offset < PW_HANDLES * sizeof(struct pw_handle) ? (struct pw_handle *)mr : NULL;
}

#endif
