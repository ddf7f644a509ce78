/*
 * Registrations on demand: a use of memory that the cache does not have registers it, and deregisters it when it ends.
 * No system call is added to these two, no wake-up and no lock. Two kinds of uses are served so:
 *
 * While the helper has no processor of its own, those of call sites that the Go side chooses (schedule.Demand). How much
 * of the rank's time they may take it decides from what is counted here.
 *
 * Always, those of call sites that are given other memory each time. No cache would spare them a registration, and
 * nothing is gained if it stays: what the helper and its watch would do for it is time lost, and memory pinned.
 */
#ifndef PINWHEEL_DEMAND_H
#define PINWHEEL_DEMAND_H

#include "process.h"

/* After so many misses of memory that had not come before, the next one is registered on demand. A program that uses
 * more buffers than that in turn, at one call site, pays for the others once. */
#define PW_FRESH_MISSES 8u

/* Relaxed: a thread that is late to see another value serves some uses otherwise. */
static inline uint64_t pw_demand_limit(void) { return __atomic_load_n(&pw.demand_limit, __ATOMIC_RELAXED); }

/* Whether a call site was given other memory often enough. */
static inline int pw_is_fresh(const struct pw_site *site)
{
	uint32_t fresh = __atomic_load_n(&site->fresh, __ATOMIC_RELAXED);

	return fresh > PW_FRESH_MISSES && fresh > __atomic_load_n(&site->fresh_needed, __ATOMIC_RELAXED);
}

enum pw_demand { PW_NOT_ON_DEMAND, PW_WITHIN_COST, PW_FRESH };

/* Why memory that the cache does not have is registered on demand at a call site, if it is. */
static inline enum pw_demand pw_is_on_demand(const struct pw_site *site)
{
	if (__atomic_load_n(&pw.demand_ticks, __ATOMIC_RELAXED) < pw_demand_limit() &&
	    !__atomic_load_n(&site->kept, __ATOMIC_RELAXED))
		return PW_WITHIN_COST;
	return __atomic_load_n(&pw.demand_fresh, __ATOMIC_RELAXED) && pw_is_fresh(site) ? PW_FRESH : PW_NOT_ON_DEMAND;
}

static inline unsigned pw_demand_hash(uint64_t start) { return start * 0x9e3779b97f4a7c15ull >> 54; } /* of 10 bits */

/* The place of a buffer that begins at start in pw.last_uses. */
static inline struct pw_last_use *pw_last_use_at(uint64_t start)
{
	return &pw.last_uses[pw_demand_hash(start)]; /* PW_LAST_USES is 2^10 */
}

/* Notes a miss, before it is known how it is registered. If memory comes again, a cache would have spared what it took
 * to register it: so as many misses of other memory as there were must come once more. */
void pw_demand_missed(struct pw_site *site, uint64_t start);

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
void pw_demand_begins(enum pw_demand why, uint64_t pages, uint64_t ticks);
/* Counts that it is deregistered, and what that took. */
void pw_demand_ends(struct pw_site *site, uint64_t pages, uint64_t ticks, uint64_t held_ticks);

#endif
