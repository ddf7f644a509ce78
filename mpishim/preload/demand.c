/* Counts of registrations on demand; see demand.h. Each of these goes beside a system call that pins or unpins. */
#include "demand.h"

static void add(uint64_t *sum, uint64_t n) { __atomic_fetch_add(sum, n, __ATOMIC_RELAXED); }

static void spend(struct pw_site *site, uint64_t ticks)
{
	add(&site->spent_ticks, ticks);
	add(&pw.demand_ticks, ticks);
}

static uint64_t page_bytes(void) { return pw.page_mask + 1; }

/* Starts of buffers that have missed; atomic. One that is there makes room for another only once in KEEPS misses: if each
 * did, many more buffers in turn than there are places would be forgotten when they come again. */
static uint64_t missed[1 << 10];
#define KEEPS 64u

/* The counts are not exact beside another thread's, which misleads nobody. */
void pw_demand_missed(struct pw_site *site, uint64_t start)
{
	uint64_t *place = &missed[pw_demand_hash(start)], was = __atomic_load_n(place, __ATOMIC_RELAXED);
	uint32_t fresh = __atomic_load_n(&site->fresh, __ATOMIC_RELAXED);

	if (was == start) {
		__atomic_store_n(&site->fresh_needed, fresh < UINT32_MAX / 2 ? 2 * fresh : UINT32_MAX, __ATOMIC_RELAXED);
		return;
	}
	if (!was || fresh % KEEPS == 0)
		__atomic_store_n(place, start, __ATOMIC_RELAXED);
	if (fresh < UINT32_MAX)
		__atomic_store_n(&site->fresh, fresh + 1, __ATOMIC_RELAXED);
}

void pw_demand_registered(uint64_t start, uint64_t bytes, uint64_t start_ticks, uint64_t end_ticks)
{
	struct pw_last_use *last = pw_last_use_at(start);
	struct pw_site *site = __atomic_load_n(&last->site, __ATOMIC_RELAXED);
	uint64_t used_ticks = __atomic_load_n(&last->end_ticks, __ATOMIC_RELAXED);

	if (!site || __atomic_load_n(&last->start, __ATOMIC_RELAXED) != start || used_ticks > start_ticks)
		return; /* a first use, which a cache would not have spared */
	add(&site->saved, (bytes + pw.page_mask) / page_bytes() * ((start_ticks - used_ticks) / PW_LONG_TICKS));
	spend(site, end_ticks - start_ticks);
}

void pw_demand_begins(enum pw_demand why, uint64_t pages, uint64_t ticks)
{
	uint64_t bytes = __atomic_add_fetch(&pw.demand_bytes, pages * page_bytes(), __ATOMIC_RELAXED);
	uint64_t peak = __atomic_load_n(&pw.demand_peak_bytes, __ATOMIC_RELAXED);

	add(&pw.demand_uses, 1);
	add(&pw.demand_fresh_uses, why == PW_FRESH);
	add(&pw.demand_all_ticks, ticks);
	while (bytes > peak &&
	       !__atomic_compare_exchange_n(&pw.demand_peak_bytes, &peak, bytes, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

void pw_demand_ends(struct pw_site *site, uint64_t pages, uint64_t ticks, uint64_t held_ticks)
{
	__atomic_fetch_sub(&pw.demand_bytes, pages * page_bytes(), __ATOMIC_RELAXED);
	add(&pw.demand_all_ticks, ticks);
	add(&pw.demand_held, pages * (held_ticks / PW_LONG_TICKS));
	add(&site->freed, 1);
	spend(site, ticks);
}
