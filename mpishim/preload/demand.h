/*
 * Registrations on demand: while the helper has no processor of its own, a use of memory that the cache does not have
 * registers it, and deregisters it when it ends. No system call is added to these two, no wake-up and no lock. Which
 * call sites are served so, and how much of the rank's time that may take, the Go side decides (schedule.Demand), from
 * what is counted here.
 */
#ifndef PINWHEEL_DEMAND_H
#define PINWHEEL_DEMAND_H

#include "process.h"

/* Relaxed: a thread that is late to see another value serves some uses otherwise. */
static inline uint64_t pw_demand_limit(void) { return __atomic_load_n(&pw.demand_limit, __ATOMIC_RELAXED); }

/* Whether memory that the cache does not have is registered on demand at a call site. */
static inline int pw_is_on_demand(const struct pw_site *site)
{
	return __atomic_load_n(&pw.demand_ticks, __ATOMIC_RELAXED) < pw_demand_limit() &&
	       !__atomic_load_n(&site->kept, __ATOMIC_RELAXED);
}

/* The place of a buffer that begins at start in pw.last_uses. */
static inline struct pw_last_use *pw_last_use_at(uint64_t start)
{
	return &pw.last_uses[start * 0x9e3779b97f4a7c15ull >> 54]; /* PW_LAST_USES is 2^10 */
}

/* Notes that a use of memory has ended. region is 0 if it is deregistered. */
static inline void pw_demand_used(struct pw_site *site, uint64_t start, uint64_t region, uint64_t end_ticks)
{
	struct pw_last_use *last = pw_last_use_at(start);

	__atomic_store_n(&last->start, start, __ATOMIC_RELAXED);
	__atomic_store_n(&last->region, region, __ATOMIC_RELAXED);
	__atomic_store_n(&last->end_ticks, end_ticks, __ATOMIC_RELAXED);
	__atomic_store_n(&last->site, site, __ATOMIC_RELAXED);
	/* Not atomic as a whole: a count that is lost beside another thread's misleads nobody. */
	__atomic_store_n(&site->uses, __atomic_load_n(&site->uses, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED);
}

/* Counts a registration for memory that the cache did not have, on demand or not. It is a cost of the release after
 * the last use, and what that saved is known now. */
void pw_demand_registered(uint64_t start, uint64_t bytes, uint64_t start_ticks, uint64_t end_ticks);

/* Counts memory as registered on demand, and what that took. */
void pw_demand_begins(uint64_t pages, uint64_t ticks);
/* Counts that it is deregistered, and what that took. */
void pw_demand_ends(struct pw_site *site, uint64_t pages, uint64_t ticks, uint64_t held_ticks);

#endif
