/*
 * The table of a registration cache, as C reads it: the layout, and the hit.
 *
 * The table is written by Go (table_unsafe.go, which must say the same and
 * holds the argument why this is right) and read by any thread. A hit makes no
 * system call, takes no lock, allocates nothing, does not call Go, and writes
 * only to memory of its own thread: a word that counts references and a count
 * of hits.
 *
 * What is not a hit goes to whoever provides the slow path.
 */
#ifndef PINWHEEL_TABLE_H
#define PINWHEEL_TABLE_H

#include <stddef.h>
#include <stdint.h>

#define PWT_MAGIC 0x31454c4241545750ull /* "PWTABLE1" */
#define PWT_VERSION 1u

#define PWT_SLOT_MASK ((1ull << 24) - 1) /* entry.state: slot + 1, 0 for an empty entry */
#define PWT_OPEN (1ull << 24)
#define PWT_COUNT_BITS 24
#define PWT_COUNT_MASK ((1ull << 24) - 1) /* reference word: references; above, epoch of last use */

/* Rights as an entry has them, in the low bits of its start. */
#define PWT_LOCAL_WRITE 0x01u
#define PWT_REMOTE_WRITE 0x02u
#define PWT_REMOTE_READ 0x04u
#define PWT_REMOTE_ATOMIC 0x08u
#define PWT_ON_DEMAND 0x10u
#define PWT_RELAXED_ORDERING 0x20u
#define PWT_KIND 0x30u /* these must be equal, the others suffice */
#define PWT_ACCESS 0x3fu

#define PWT_OTHER 0x40u /* wanted, but not expressible: the slow path */

#define PWT_WHICH 3ull    /* entry.high: found by its range (0), by its first granule, by its last */
#define PWT_FENCED 1u     /* header.flags: no membarrier(2) here; readers fence */
#define PWT_ANY_COVERING 2u   /* any open region that covers a request will do */
#define PWT_RETIRED 1u    /* desc.flags: look after the last reference */
#define PWT_ABSENT 2u     /* desc.flags: known and not registered; a thread may register it by itself (grant.h) */

struct pwt_header {
	uint64_t magic;
	uint32_t version;
	uint32_t capacity; /* slots */
	uint64_t descs;    /* offset of the descriptors */
	uint64_t size;     /* bytes */
	uint64_t reserved0[4];

	uint64_t exact;       /* hash area of regions by range: offset | 64 - log2(entries) */
	uint64_t granules;    /* hash area of regions by granule */
	uint64_t classes;     /* bit k: there are regions of 2^(k-1)+1 to 2^k bytes */
	const uint64_t *gen;  /* moves before a mapping changes; atomic */
	uint64_t seen;        /* value of *gen that has been dealt with */
	uint64_t epoch;       /* advances with misses */
	uint32_t retired;     /* registrations that live until their last reference is dropped */
	uint32_t flags;
	uint64_t page_mask; /* page size - 1 */

	uint64_t still;  /* what gen points to without a watcher */
	uint32_t undone; /* (readers) a hit on a retired registration was given up: the slow path looks after it */
	uint32_t reserved1;
	const struct pwt_change *log; /* of the watcher whose word gen is; NULL: it has none; atomic */
	uint64_t reserved2[5];
};

/* What number n of the generation changed, at place n % PWT_CHANGES of the log (vmwatch/bpf/watch.bpf.c). */
struct pwt_change {
	uint64_t start, end;
	uint64_t check; /* pwt_check */
	uint64_t seq;   /* n + 1, once the rest is there */
};

#define PWT_CHANGES 4096u

struct pwt_entry {
	uint64_t state; /* sequence | open | slot + 1 */
	uint64_t low;   /* start | rights */
	uint64_t high;  /* end | which */
	uint64_t keys;  /* lkey | rkey << 32 */
};

struct pwt_desc {
	uint64_t id; /* region ID; 0 for a registration that is not cached */
	uint64_t low;
	uint64_t high;
	uint64_t keys;
	uint64_t handle;
	uint32_t flags;
	uint32_t access; /* enum ibv_access_flags */
	uint64_t reserved[2];
};

/* Memory of one thread. */
struct pwt_local {
	struct pwt_header *table;
	uint64_t hits;
	uint64_t reserved[6];
	uint64_t words[]; /* by slot */
};

/* One counted reference. */
struct pwt_ref {
	struct pwt_desc *desc; /* NULL for none */
	uint64_t id;           /* the request's region, if desc is another one; else 0 */
	uint64_t keys;         /* lkey | rkey << 32 */
};

/* table_unsafe.go lays out the same; its test reads these lines. */
_Static_assert(offsetof(struct pwt_header, version) == 8, "layout");
_Static_assert(offsetof(struct pwt_header, capacity) == 12, "layout");
_Static_assert(offsetof(struct pwt_header, descs) == 16, "layout");
_Static_assert(offsetof(struct pwt_header, size) == 24, "layout");
_Static_assert(offsetof(struct pwt_header, exact) == 64, "layout");
_Static_assert(offsetof(struct pwt_header, granules) == 72, "layout");
_Static_assert(offsetof(struct pwt_header, classes) == 80, "layout");
_Static_assert(offsetof(struct pwt_header, gen) == 88, "layout");
_Static_assert(offsetof(struct pwt_header, seen) == 96, "layout");
_Static_assert(offsetof(struct pwt_header, epoch) == 104, "layout");
_Static_assert(offsetof(struct pwt_header, retired) == 112, "layout");
_Static_assert(offsetof(struct pwt_header, flags) == 116, "layout");
_Static_assert(offsetof(struct pwt_header, page_mask) == 120, "layout");
_Static_assert(offsetof(struct pwt_header, still) == 128, "layout");
_Static_assert(offsetof(struct pwt_header, undone) == 136, "layout");
_Static_assert(offsetof(struct pwt_header, log) == 144, "layout");
_Static_assert(sizeof(struct pwt_header) == 192, "layout");
_Static_assert(offsetof(struct pwt_change, end) == 8, "layout");
_Static_assert(offsetof(struct pwt_change, check) == 16, "layout");
_Static_assert(offsetof(struct pwt_change, seq) == 24, "layout");
_Static_assert(sizeof(struct pwt_change) == 32, "layout");
_Static_assert(offsetof(struct pwt_entry, low) == 8, "layout");
_Static_assert(offsetof(struct pwt_entry, high) == 16, "layout");
_Static_assert(offsetof(struct pwt_entry, keys) == 24, "layout");
_Static_assert(sizeof(struct pwt_entry) == 32, "layout");
_Static_assert(offsetof(struct pwt_desc, low) == 8, "layout");
_Static_assert(offsetof(struct pwt_desc, high) == 16, "layout");
_Static_assert(offsetof(struct pwt_desc, keys) == 24, "layout");
_Static_assert(offsetof(struct pwt_desc, handle) == 32, "layout");
_Static_assert(offsetof(struct pwt_desc, flags) == 40, "layout");
_Static_assert(offsetof(struct pwt_desc, access) == 44, "layout");
_Static_assert(sizeof(struct pwt_desc) == 64, "layout");
_Static_assert(offsetof(struct pwt_local, hits) == 8, "layout");
_Static_assert(sizeof(struct pwt_local) == 64, "layout");
_Static_assert(offsetof(struct pwt_ref, id) == 8, "layout");
_Static_assert(offsetof(struct pwt_ref, keys) == 16, "layout");
_Static_assert(sizeof(struct pwt_ref) == 24, "layout");

/* The path of a hit is inlined as a whole: its result then stays in registers. */
#define PWT_HOT static inline __attribute__((always_inline))

PWT_HOT uint64_t pwt_load(const uint64_t *p) { return __atomic_load_n(p, __ATOMIC_ACQUIRE); }

/*
 * What is looked at after a count. Where readers fence, nothing else keeps it behind the exchange of that: a load that
 * acquires may overtake it, and does as LDAPR of AArch64.
 */
PWT_HOT uint64_t pwt_load_counted(const uint64_t *p) { return __atomic_load_n(p, __ATOMIC_SEQ_CST); }

PWT_HOT struct pwt_entry *pwt_entry(const struct pwt_header *h, uint64_t cursor, uint64_t i)
{
	return (struct pwt_entry *)((char *)h + (cursor & ~63ull)) + i;
}

#define PWT_GOLDEN 0x9e3779b97f4a7c15ull /* 2^64 / golden ratio */

PWT_HOT uint64_t pwt_place(uint64_t cursor, uint64_t granule) { return granule * PWT_GOLDEN >> (cursor & 63); }

PWT_HOT uint64_t pwt_place_exact(uint64_t cursor, uint64_t low, uint64_t high)
{
	return (low + 3 * high) * PWT_GOLDEN >> (cursor & 63);
}

PWT_HOT uint64_t pwt_next(uint64_t cursor, uint64_t i)
{
	return (i + 1) & ((1ull << (64 - (cursor & 63))) - 1);
}

PWT_HOT struct pwt_desc *pwt_desc(const struct pwt_header *h, uint32_t slot)
{
	return (struct pwt_desc *)((char *)h + h->descs) + slot;
}

/* The smallest k with n <= 2^k, for n > 1. */
PWT_HOT unsigned pwt_class(uint64_t n) { return 64 - (unsigned)__builtin_clzll(n - 1); }

/* Zero if an entry's rights suffice. */
PWT_HOT uint64_t pwt_lacks(uint64_t low, uint64_t want)
{
	return ((want & ~low) | ((want ^ low) & PWT_KIND)) & (PWT_ACCESS | PWT_OTHER);
}

/* Counts n, modulo 2^24, more references to a slot. */
PWT_HOT void pwt_count(struct pwt_local *l, uint32_t slot, uint64_t n)
{
	struct pwt_header *h = l->table;
	uint64_t *word = &l->words[slot];
	uint64_t v = __atomic_load_n(&h->epoch, __ATOMIC_RELAXED) << PWT_COUNT_BITS |
		     ((__atomic_load_n(word, __ATOMIC_RELAXED) + n) & PWT_COUNT_MASK);

	if (__builtin_expect(h->flags & PWT_FENCED, 0))
		__atomic_exchange_n(word, v, __ATOMIC_SEQ_CST);
	else
		__atomic_store_n(word, v, __ATOMIC_RELEASE);
	__atomic_signal_fence(__ATOMIC_SEQ_CST); /* the writer's membarrier does the rest */
}

/* Whether the last reference of a slot's registration has to be looked after. */
PWT_HOT int pwt_is_retired(const struct pwt_header *h, const struct pwt_desc *d)
{
	return __builtin_expect(__atomic_load_n(&h->retired, __ATOMIC_SEQ_CST), 0) && /* as pwt_load_counted */
	       __atomic_load_n(&d->flags, __ATOMIC_ACQUIRE) & PWT_RETIRED;
}

/*
 * Takes a count back whose entry was closed meanwhile. If the registration under
 * this slot, be it the one that was meant or a later one, was closed for good,
 * its last user may have left it because of this count.
 */
static __attribute__((noinline, unused)) void pwt_undo(struct pwt_local *l, uint32_t slot)
{
	pwt_count(l, slot, PWT_COUNT_MASK);
	if (pwt_is_retired(l->table, pwt_desc(l->table, slot)))
		__atomic_store_n(&l->table->undone, 1, __ATOMIC_RELEASE);
}

/*
 * Counts a reference to an entry that was open with this state, if it still is.
 * If not, the caller goes to the slow path, which looks at header.undone (in Go: Cache.Sweep).
 */
PWT_HOT int pwt_take(struct pwt_local *l, struct pwt_entry *e, uint64_t state, struct pwt_ref *ref)
{
	uint32_t slot = (uint32_t)(state & PWT_SLOT_MASK) - 1;
	uint64_t keys = pwt_load(&e->keys); /* once the state was looked at again, the place may be another's */

	pwt_count(l, slot, 1);
	if (__builtin_expect(pwt_load_counted(&e->state) != state, 0)) {
		pwt_undo(l, slot);
		return 0;
	}
	__atomic_store_n(&l->hits, __atomic_load_n(&l->hits, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED);
	ref->desc = pwt_desc(l->table, slot);
	ref->id = 0;
	ref->keys = keys;
	return 1;
}

/* Which of the regions that contain a request pwt_find finds. */
enum pwt_fit {
	PWT_BEST_FIT, /* the smallest, if it is at most twice as long; of equal ones the first in the address space */
	PWT_ANY_OPEN,
	PWT_ANY,
};

/* The entry of a region that contains a request, or NULL. Inlined, so that nothing asks which. */
PWT_HOT struct pwt_entry *pwt_find(const struct pwt_header *h, uint64_t low, uint64_t high, uint64_t want,
				   enum pwt_fit which, uint64_t *state)
{
	uint64_t cursor = pwt_load(&h->granules), n = high - low, m = h->page_mask, best = 0, start = 0, i;
	unsigned k = pwt_class(n);
	uint64_t classes = pwt_load(&h->classes) >> k & (which == PWT_BEST_FIT ? 3 : ~0ull);
	struct pwt_entry *fit = NULL;

	for (; classes && !fit; classes >>= 1, k++) {
		uint64_t longest = 2 * n < 1ull << k ? 2 * n : 1ull << k; /* longer regions lie on the way by chance */

		if (!(classes & 1))
			continue;
		for (i = pwt_place(cursor, low >> k);; i = pwt_next(cursor, i)) {
			struct pwt_entry *e = pwt_entry(h, cursor, i);
			uint64_t s = pwt_load(&e->state), elow = pwt_load(&e->low), from = elow & ~m;
			uint64_t to = pwt_load(&e->high) & ~PWT_WHICH, length = to - from;

			if (!(s & PWT_SLOT_MASK))
				break;
			if (from > low || to < high || pwt_lacks(elow, want) || (which == PWT_ANY_OPEN && !(s & PWT_OPEN)))
				continue;
			if (which != PWT_BEST_FIT) {
				*state = s;
				return e;
			}
			if (length <= longest && (!fit || length < best || (length == best && from < start))) {
				fit = e;
				*state = s;
				best = length;
				start = from;
			}
		}
	}
	return fit;
}

/* Takes an open region that covers the request. */
static int pwt_get_covering(struct pwt_local *l, uint64_t low, uint64_t high, uint64_t want, struct pwt_ref *ref)
{
	uint64_t state;
	struct pwt_entry *e = pwt_find(l->table, low, high, want, PWT_ANY_OPEN, &state);

	return e && pwt_take(l, e, state, ref);
}

/* pwt_get for requests that are not for exactly the pages of an open region. */
static __attribute__((noinline, unused)) int pwt_get_contained(struct pwt_local *l, uint64_t low, uint64_t high,
							       uint64_t want, struct pwt_ref *ref)
{
	struct pwt_header *h = l->table;
	struct pwt_entry *fit;
	uint64_t state, id;

	if (h->flags & PWT_ANY_COVERING)
		return pwt_get_covering(l, low, high, want, ref);
	fit = pwt_find(h, low, high, want, PWT_BEST_FIT, &state);
	if (!fit)
		return 0; /* it has to be added or grown */
	if (state & PWT_OPEN)
		return pwt_take(l, fit, state, ref);
	id = pwt_load(&pwt_desc(h, (uint32_t)(state & PWT_SLOT_MASK) - 1)->id);
	if (pwt_load(&fit->state) != state || !pwt_get_covering(l, low, high, want, ref))
		return 0;
	ref->id = id;
	return 1;
}

/* Whether the cache has dealt with all changes of mappings. */
PWT_HOT int pwt_is_current(const struct pwt_header *h)
{
	return pwt_load(__atomic_load_n(&h->gen, __ATOMIC_RELAXED)) == pwt_load(&h->seen);
}

static inline uint64_t pwt_check(uint64_t start, uint64_t end, uint64_t n)
{
	return start * 0x9e3779b97f4a7c15ull + end * 0xc2b2ae3d27d4eb4full + n + 1;
}

/*
 * Whether none of the changes with which the cache has not dealt concerns these pages: memory of others that comes and
 * goes must not make a hit wait for the writer, who deals with them later. 0 if the log does not tell: a change is
 * being written, the log has gone round, or they are many. Without a watcher gen moves after log is NULL.
 */
static __attribute__((noinline, unused)) int pwt_is_unaffected(const struct pwt_header *h, uint64_t low, uint64_t high)
{
	const uint64_t many = 16;
	uint64_t n = pwt_load(&h->seen); /* before the generation, which is never behind it */
	uint64_t end = pwt_load(__atomic_load_n(&h->gen, __ATOMIC_ACQUIRE));
	const struct pwt_change *log = __atomic_load_n(&h->log, __ATOMIC_ACQUIRE);

	if (!log || end - n > many)
		return 0;
	for (; n != end; n++) {
		const struct pwt_change *c = &log[n % PWT_CHANGES];
		uint64_t seq = pwt_load(&c->seq), from = pwt_load(&c->start), to = pwt_load(&c->end);

		if (seq != n + 1 || pwt_load(&c->check) != pwt_check(from, to, n) || (from < high && low < to))
			return 0;
	}
	return 1;
}

/* The form of enum ibv_access_flags that pwt_get wants. */
PWT_HOT uint64_t pwt_want(uint32_t access)
{
	uint64_t want = (access & 0xf) | (access & 1u << 6) >> 2 | (access & 1u << 20) >> 15;

	return access & ~(0xfu | 1u << 6 | 1u << 20) ? want | PWT_OTHER : want;
}

/* The enum ibv_access_flags of an entry's rights: the inverse of pwt_want. */
PWT_HOT uint32_t pwt_access(uint64_t low)
{
	return (uint32_t)((low & 0xf) | (low & PWT_ON_DEMAND) << 2 | (low & PWT_RELAXED_ORDERING) << 15);
}

/*
 * Returns 1 and a counted reference if len bytes from addr are registered
 * with all of want (see pwt_want), 0 if the slow path has to look. For a request
 * whose whole pages are those of a region this reads one entry.
 */
PWT_HOT int pwt_get(struct pwt_local *l, const void *addr, size_t len, uint64_t want, struct pwt_ref *ref)
{
	struct pwt_header *h = l->table;
	uint64_t m = h->page_mask, start = (uint64_t)(uintptr_t)addr, end = start + len;
	uint64_t low = start & ~m, high = (end + m) & ~m, cursor, i;

	if (__builtin_expect(end <= start || !high || (!pwt_is_current(h) && !pwt_is_unaffected(h, low, high)), 0))
		return 0;
	cursor = pwt_load(&h->exact);
	for (i = pwt_place_exact(cursor, low, high);; i = pwt_next(cursor, i)) {
		struct pwt_entry *e = pwt_entry(h, cursor, i);
		uint64_t state = pwt_load(&e->state), elow = pwt_load(&e->low), ehigh = pwt_load(&e->high);

		if (!(((elow ^ low) & ~m) | (ehigh ^ high) | pwt_lacks(elow, want) | (~state & PWT_OPEN)))
			return pwt_take(l, e, state, ref);
		if (!(state & PWT_SLOT_MASK))
			return pwt_get_contained(l, low, high, want, ref);
	}
}

/* Drops a reference. Returns 1 if the slow path has to look after the registration. */
PWT_HOT int pwt_put(struct pwt_local *l, const struct pwt_ref *ref)
{
	struct pwt_header *h = l->table;

	pwt_count(l, (uint32_t)(ref->desc - pwt_desc(h, 0)), PWT_COUNT_MASK);
	return pwt_is_retired(h, ref->desc);
}

#endif
