/*
 * How a C thread registers a first use by itself, without the writer of the cache.
 *
 * The cache grants free slots, and gives credit below its limits. A thread that needs memory of which
 * the table knows no region
 *
 *   - takes a grant, and credit for the bytes (pwt_take_grant). This also counts the thread into the watch
 *     of the range, so that every change of its mapping from now on is in the log of the watcher;
 *   - registers the memory;
 *   - describes the registration and counts its reference in the slot (pwt_grant_made), or reports
 *     that it failed (pwt_grant_failed).
 *
 * From then on the reference is as good as any, and its thread drops it by pwt_put. Nobody else can get one: the
 * table has no entry of the region yet. The writer publishes the registration later (publish.go). It opens
 * entries if the range has not changed since pwt_take_grant. Otherwise it retires the registration, which then
 * ends with its last reference, as that of any region whose mapping changed.
 *
 * A state names the owner of a grant: FREE is anyone's who takes it by CAS, TAKEN the thread's, MADE and
 * FAILED the writer's. Nothing here waits, makes a system call or takes a lock.
 */
#ifndef PINWHEEL_GRANT_H
#define PINWHEEL_GRANT_H

#include "table.h"

#define PWT_GRANTS 16u
#define PWT_GRANTS_AT 1024u /* struct pwt_grants in the table */
#define PWT_GRANT_NOTES 4u
#define PWT_GRANT_BYTES (1ull << 30) /* longest range; beside the registration of a longer one the writer costs nothing */
#define PWT_CREDIT_BYTES 48u   /* credit: bytes in the low bits, registrations above */
#define PWT_GRANULE_BITS 21u /* log2 of the granules that a watcher knows, and how many it tells apart */
#define PWT_GRANULE_COUNT 65536u

/* States of a grant. */
#define PWT_NONE 0u
#define PWT_FREE 1u
#define PWT_TAKEN 2u
#define PWT_MADE 3u
#define PWT_FAILED 4u

struct pwt_grant {
	uint32_t state; /* atomic */
	uint32_t slot;
	uint64_t low, high;  /* whole pages; atomic: other threads look which ranges are on their way */
	uint64_t generation; /* of the watcher's word, before the range was watched */
	uint64_t note[PWT_GRANT_NOTES]; /* the writer hands it on */
};

struct pwt_grants {
	uint64_t credit;  /* atomic */
	uint64_t posted;  /* atomic: grants that became MADE or FAILED so far */
	uint32_t *watches; /* atomic counts, by granule */
	uint64_t reserved[5];
	struct pwt_grant grant[PWT_GRANTS];
};

_Static_assert(offsetof(struct pwt_grant, slot) == 4, "layout");
_Static_assert(offsetof(struct pwt_grant, low) == 8, "layout");
_Static_assert(offsetof(struct pwt_grant, high) == 16, "layout");
_Static_assert(offsetof(struct pwt_grant, generation) == 24, "layout");
_Static_assert(offsetof(struct pwt_grant, note) == 32, "layout");
_Static_assert(sizeof(struct pwt_grant) == 64, "layout");
_Static_assert(offsetof(struct pwt_grants, posted) == 8, "layout");
_Static_assert(offsetof(struct pwt_grants, watches) == 16, "layout");
_Static_assert(offsetof(struct pwt_grants, grant) == 64, "layout");
_Static_assert(sizeof(struct pwt_grants) == 1088, "layout");

static inline struct pwt_grants *pwt_grants(struct pwt_header *h)
{
	return (struct pwt_grants *)((char *)h + PWT_GRANTS_AT);
}

/*
 * Whether a known region, registered or not, may have to do with a request: if it contains the middle and is of the same
 * kind. Regions that the request fits in do, and those that would grow for it. The writer decides anew, so this may err.
 */
static inline int pwt_is_known(const struct pwt_header *h, uint64_t low, uint64_t high, uint64_t want)
{
	uint64_t middle = (low + (high - low) / 2) & ~h->page_mask, state;

	return pwt_find(h, middle, middle + h->page_mask + 1, want & PWT_KIND, PWT_ANY, &state) != NULL;
}

/* Whether another registration of some of these pages is on its way. This may err, too. */
static inline int pwt_is_coming(struct pwt_grants *o, uint64_t low, uint64_t high)
{
	for (unsigned i = 0; i < PWT_GRANTS; i++) {
		struct pwt_grant *f = &o->grant[i];

		if (__atomic_load_n(&f->state, __ATOMIC_ACQUIRE) >= PWT_TAKEN && pwt_load(&f->low) < high &&
		    low < pwt_load(&f->high))
			return 1;
	}
	return 0;
}

/* Takes credit. Only the writer gives some back. */
static inline int pwt_take_credit(struct pwt_grants *o, uint64_t bytes)
{
	uint64_t credit = __atomic_load_n(&o->credit, __ATOMIC_RELAXED);

	do
		if (!(credit >> PWT_CREDIT_BYTES) || (credit & ((1ull << PWT_CREDIT_BYTES) - 1)) < bytes)
			return 0;
	while (!__atomic_compare_exchange_n(&o->credit, &credit, credit - (1ull << PWT_CREDIT_BYTES) - bytes, 0, __ATOMIC_ACQ_REL,
					    __ATOMIC_RELAXED));
	return 1;
}

/* Counts this thread into the watch of each granule of a range. */
static inline void pwt_watch(struct pwt_grants *o, uint64_t low, uint64_t high)
{
	for (uint64_t g = low >> PWT_GRANULE_BITS; g <= (high - 1) >> PWT_GRANULE_BITS; g++)
		__atomic_fetch_add(&o->watches[g % PWT_GRANULE_COUNT], 1, __ATOMIC_SEQ_CST);
}

/*
 * Takes a grant for whole pages that pwt_get did not find, with rights as pwt_want gives them. NULL:
 * the slow path has to look, since this is no first use, or nothing is granted. Otherwise the caller
 * registers the pages, and then calls pwt_grant_made or pwt_grant_failed.
 */
static inline struct pwt_grant *pwt_take_grant(struct pwt_local *l, uint64_t low, uint64_t high, uint64_t want)
{
	struct pwt_header *h = l->table;
	struct pwt_grants *o = pwt_grants(h);

	if (high <= low || high - low > PWT_GRANT_BYTES || want & PWT_OTHER || !__atomic_load_n(&o->credit, __ATOMIC_RELAXED) ||
	    !pwt_is_current(h) || __atomic_load_n(&h->undone, __ATOMIC_RELAXED))
		return NULL;
	/* In this order: the writer makes a region known before it renews the grant. */
	if (pwt_is_coming(o, low, high) || pwt_is_known(h, low, high, want))
		return NULL;
	for (unsigned i = 0; i < PWT_GRANTS; i++) {
		struct pwt_grant *f = &o->grant[i];
		uint32_t is_free = PWT_FREE;

		if (!__atomic_compare_exchange_n(&f->state, &is_free, PWT_TAKEN, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			continue;
		if (!pwt_take_credit(o, high - low)) {
			__atomic_store_n(&f->state, PWT_FREE, __ATOMIC_RELEASE);
			return NULL;
		}
		__atomic_store_n(&f->low, low, __ATOMIC_RELEASE);
		__atomic_store_n(&f->high, high, __ATOMIC_RELEASE);
		/* First the word, then the watch: what the watch brings into the log comes later. */
		f->generation = __atomic_load_n(__atomic_load_n(&h->gen, __ATOMIC_RELAXED), __ATOMIC_SEQ_CST);
		pwt_watch(o, low, high);
		return f;
	}
	return NULL;
}

/* Hands a grant to the writer, who has to be told of it. */
static inline void pwt_grant_post(struct pwt_grants *o, struct pwt_grant *f, uint32_t state)
{
	__atomic_store_n(&f->state, state, __ATOMIC_RELEASE);
	__atomic_fetch_add(&o->posted, 1, __ATOMIC_RELEASE);
}

/* ThreadSanitizer does not see that Go's atomic accesses lie between this and other uses of the slot. */
static __attribute__((noinline, unused, no_sanitize("thread"))) void pwt_describe(struct pwt_desc *d,
		const struct pwt_grant *f, uint32_t access, uint64_t keys, uint64_t handle)
{
	d->low = f->low;
	d->high = f->high;
	d->keys = keys;
	d->handle = handle;
	d->access = access;
}

/* The pages are registered. *ref is the caller's counted reference. */
static inline void pwt_grant_made(struct pwt_local *l, struct pwt_grant *f, uint32_t access, uint64_t keys,
		uint64_t handle, struct pwt_ref *ref)
{
	struct pwt_desc *d = pwt_desc(l->table, f->slot);

	pwt_describe(d, f, access, keys, handle);
	pwt_count(l, f->slot, 1);
	*ref = (struct pwt_ref){.desc = d, .keys = keys};
	pwt_grant_post(pwt_grants(l->table), f, PWT_MADE);
}

/* They could not be registered. */
static inline void pwt_grant_failed(struct pwt_local *l, struct pwt_grant *f)
{
	pwt_grant_post(pwt_grants(l->table), f, PWT_FAILED);
}

#endif
