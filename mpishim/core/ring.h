/* The producer's side of DQ: that of queue.Ring, in C. No system call, no allocation, no lock. */
#ifndef PINWHEEL_RING_H
#define PINWHEEL_RING_H

#include "shared.h"

/* Makes the slot of the oldest entry free for the producer, unless the consumer is copying it. */
static inline int pw_ring_reclaim(struct pw_ring *r, struct pw_slot *s, uint64_t turn)
{
	if (turn != PW_TURN_TAKEN &&
	    __atomic_compare_exchange_n(&s->turn, &turn, PW_TURN_FREE, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
		__atomic_store_n(&r->lost, r->lost + 1, __ATOMIC_RELAXED);
		return 1;
	}
	/* The consumer has taken the entry, and may have finished with it since. */
	if (__atomic_load_n(&s->turn, __ATOMIC_ACQUIRE) == PW_TURN_FREE)
		return 1;
	__atomic_store_n(&r->lost, r->lost + 1, __ATOMIC_RELAXED);
	return 0;
}

/* Returns where the next entry is to be written, to be followed by pw_ring_push; NULL if it is lost. */
static inline struct pw_event *pw_ring_next(struct pw_ring *r)
{
	struct pw_slot *s = &r->slots[r->head & (PW_RING - 1)];
	uint64_t turn = __atomic_load_n(&s->turn, __ATOMIC_ACQUIRE);

	if (__builtin_expect(turn != PW_TURN_FREE, 0) && !pw_ring_reclaim(r, s, turn))
		return NULL;
	return &s->item;
}

#define PW_AHEAD 4u /* slots that come over before they are needed: messages may follow each other quickly */

/* Begins to fetch a cache line to write it. Compilers fetch to read, where not every processor has PREFETCHW. Those
 * that lack it take it for no operation. */
static inline void own_line(const void *line)
{
#ifdef __x86_64__
	__asm__("prefetchw %0" : : "m"(*(const char *)line));
#else
	__builtin_prefetch(line, 1);
#endif
}

static inline void pw_ring_push(struct pw_ring *r)
{
	__atomic_store_n(&r->slots[r->head & (PW_RING - 1)].turn, PW_TURN_READY(r->head), __ATOMIC_RELEASE);
	r->head++;
	/* The consumer had the slots last: until one is needed it has come over from the other core. */
	own_line(&r->slots[(r->head + PW_AHEAD - 1) & (PW_RING - 1)]);
}

#endif
