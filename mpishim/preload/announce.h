/* Announced buffers: see announce.c. */
#ifndef PINWHEEL_ANNOUNCE_H
#define PINWHEEL_ANNOUNCE_H

#include "process.h"

struct pw_call;
void pw_announce_call(struct pw_call *c); /* before the call, and again after it if its buffers were unknown */
void pw_announce_persistent(const struct pw_call *c); /* after the call has created a persistent request */

static inline uint32_t pw_announced_count(const struct pw_thread *t)
{
	return __atomic_load_n(&t->announced_count, __ATOMIC_RELAXED);
}

static inline int pw_announced_contains(const struct pw_announced *p, uint64_t start, uint64_t end)
{
	uint64_t from = __atomic_load_n(&p->start, __ATOMIC_ACQUIRE); /* the rest of the entry is there */

	return from && from <= start && end <= __atomic_load_n(&p->end, __ATOMIC_RELAXED);
}

const struct pw_announced *pw_find_older_announced(struct pw_thread *t, uint64_t start, uint64_t end);

/* The announced buffer that contains this memory, of any thread; NULL if there is none. */
static inline const struct pw_announced *pw_find_announced(struct pw_thread *t, uint64_t start, uint64_t end)
{
	const struct pw_announced *newest = &t->announced[(pw_announced_count(t) - 1) & (PW_ANNOUNCED - 1)];

	return pw_likely(pw_announced_contains(newest, start, end)) ? newest : pw_find_older_announced(t, start, end);
}

/*
 * Memory that was registered though nobody had announced it, and given back: what a transport moves for MPI or for a
 * library of its own. When it comes again, it is a buffer like others.
 */
void pw_note_returned(uint64_t start, uint64_t bytes);
/* The call that such memory belongs to, or NULL; caller is where the transport registers it. */
const struct pw_announced *pw_find_returned(struct pw_thread *t, uint64_t start, uint64_t bytes, void *caller);

static inline struct pw_call_id pw_announced_call(const struct pw_announced *p)
{
	return (struct pw_call_id){__atomic_load_n(&p->call.seq, __ATOMIC_RELAXED), __atomic_load_n(&p->call.op,
			__ATOMIC_RELAXED),
				 __atomic_load_n(&p->call.site, __ATOMIC_ACQUIRE)};
}

#endif
