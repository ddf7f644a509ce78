/*
 * How a C thread registers memory by itself, without the writer of the cache: a first use, or a late one.
 *
 * The cache grants free slots, and gives credit below its limits. A thread that needs memory of which
 * the table knows no region, or a region that is not registered,
 *
 *   - takes a grant, and credit for the bytes (pwt_take_grant). This also counts the thread into the watch
 *     of the range, so that every change of its mapping from now on is in the log of the watcher. The range of a
 *     known region is all of it, and its ID becomes that of the slot. Then none of these pages may have changed since the
 *     cache has dealt with changes. For a first use it does not matter what was there before;
 *   - registers the memory;
 *   - describes the registration and counts its reference in the slot (pwt_grant_made), or reports
 *     that it failed (pwt_grant_failed).
 *
 * From then on the reference is as good as any, and its thread drops it by pwt_put. Nobody else can get one: the
 * table has no entry of the region yet. The writer publishes the registration later (publish.go). It opens
 * entries if the range has not changed since pwt_take_grant. Otherwise it retires the registration, which then
 * ends with its last reference, as that of any region whose mapping changed. A known region moves to the slot if it
 * is not registered by then. If somebody else has registered it, this registration, too, ends with its last reference.
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
 * Whether a known region may have to do with a request that fits in none: if it contains the middle and is of the same
 * kind, as those that would grow for it do. The writer decides anew, so this may err.
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

/* What a thread is to register for a request. */
struct pwt_missing {
	uint64_t low, high; /* whole pages */
	uint64_t id;        /* of the known region; 0 for a first use */
	uint32_t access;    /* enum ibv_access_flags */
};

/* Finds that, for whole pages. 0: the slow path has to look. */
static inline int pwt_find_missing(const struct pwt_header *h, uint64_t want, struct pwt_missing *m)
{
	uint64_t state, low, flags, page_mask = h->page_mask;
	struct pwt_entry *e = pwt_find(h, m->low, m->high, want, PWT_BEST_FIT, &state);
	struct pwt_desc *d;

	if (!e)
		return !pwt_is_known(h, m->low, m->high, want);
	d = pwt_desc(h, (uint32_t)(state & PWT_SLOT_MASK) - 1);
	flags = __atomic_load_n(&d->flags, __ATOMIC_ACQUIRE);
	low = pwt_load(&e->low);
	m->low = low & ~page_mask;
	m->high = pwt_load(&e->high) & ~PWT_WHICH;
	m->id = pwt_load(&d->id);
	m->access = pwt_access(low);
	return !(state & PWT_OPEN) && flags & PWT_ABSENT && pwt_load(&e->state) == state;
}

/*
 * Takes a grant for memory that pwt_get did not find, with rights as pwt_want gives them. *m has the whole pages and
 * the rights that are asked for, and afterwards those that are to be registered. NULL: the slow path has to look, since
 * the memory belongs to a region that is on its way or would have to grow, or nothing is granted. Otherwise the caller
 * registers *m, and then calls pwt_grant_made or pwt_grant_failed.
 */
static inline struct pwt_grant *pwt_take_grant(struct pwt_local *l, uint64_t want, struct pwt_missing *m)
{
	struct pwt_header *h = l->table;
	struct pwt_grants *o = pwt_grants(h);

	if (m->high <= m->low || want & PWT_OTHER || !__atomic_load_n(&o->credit, __ATOMIC_RELAXED) ||
	    __atomic_load_n(&h->undone, __ATOMIC_RELAXED))
		return NULL;
	m->id = 0;
	/* In this order: the writer makes a region known, or registered, before it renews the grant. */
	if (pwt_is_coming(o, m->low, m->high) || !pwt_find_missing(h, want, m) || m->high - m->low > PWT_GRANT_BYTES ||
	    (m->id && !pwt_is_current(h) && !pwt_is_unaffected(h, m->low, m->high)))
		return NULL;
	for (unsigned i = 0; i < PWT_GRANTS; i++) {
		struct pwt_grant *f = &o->grant[i];
		uint32_t is_free = PWT_FREE;

		if (!__atomic_compare_exchange_n(&f->state, &is_free, PWT_TAKEN, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			continue;
		if (!pwt_take_credit(o, m->high - m->low)) {
			__atomic_store_n(&f->state, PWT_FREE, __ATOMIC_RELEASE);
			return NULL;
		}
		__atomic_store_n(&f->low, m->low, __ATOMIC_RELEASE);
		__atomic_store_n(&f->high, m->high, __ATOMIC_RELEASE);
		if (m->id)
			__atomic_store_n(&pwt_desc(h, f->slot)->id, m->id, __ATOMIC_RELEASE);
		/* First the word, then the watch: what the watch brings into the log comes later. */
		f->generation = __atomic_load_n(__atomic_load_n(&h->gen, __ATOMIC_RELAXED), __ATOMIC_SEQ_CST);
		pwt_watch(o, m->low, m->high);
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
