/*
 * The state of a process, for libpinwheel.so and libpinwheel-api.so.
 * Each of the two libraries has a copy of its own; no symbol is exported.
 */
#ifndef PINWHEEL_PROCESS_H
#define PINWHEEL_PROCESS_H

#include <time.h>
#ifdef __x86_64__
#include <x86intrin.h>
#endif

#include "ops.h"
#include "shared.h"

#define PW_EXPORT __attribute__((visibility("default")))
#define pw_likely(x) __builtin_expect(!!(x), 1)
#define pw_unlikely(x) __builtin_expect(!!(x), 0)

extern struct pw_shared pw;

void pw_prepare(void);  /* finds out what can be known before Go is there; call it first */
void pw_warn(const char *format, ...) __attribute__((format(printf, 1, 2))); /* one line to standard error */
/* atomic: by PINWHEEL_DISABLE, in a launcher, in a forked child. Every call passes straight through. */
extern int pw_disabled;

/*
 * A word that one thread writes while others read it is atomic at each access, and
 * one function reads each such word. An acquire load pairs with the release store, or Go's
 * sequentially consistent store, of the writer. A relaxed word orders nothing.
 */
static inline int pw_is_disabled(void) { return pw_unlikely(__atomic_load_n(&pw_disabled, __ATOMIC_RELAXED)); }
static inline void pw_disable(void) { __atomic_store_n(&pw_disabled, 1, __ATOMIC_RELAXED); }

/* Acquire: Go has written the threshold and the page mask before the mode. */
static inline int pw_is_managing(void) { return pw_likely(__atomic_load_n(&pw.mode, __ATOMIC_ACQUIRE) == PW_MANAGED); }

/* Relaxed: a thread that is late to see another value looks at a few messages more, or fewer. */
static inline uint64_t pw_notice(void) { return __atomic_load_n(&pw.notice, __ATOMIC_RELAXED); }

/* Acquire, as above. */
static inline int pw_wants_events(void) { return pw_likely(__atomic_load_n(&pw.want_events, __ATOMIC_ACQUIRE)); }

/* Acquire: pw_mpi, the rank and the recorder are set before. */
static inline int pw_is_init(void) { return pw_likely(__atomic_load_n(&pw.is_init, __ATOMIC_ACQUIRE)); }

static inline int pw_uses_verbs(void) { return __atomic_load_n(&pw.verbs_used, __ATOMIC_RELAXED) != 0; }

/* A domain as the region IDs of the helper have it: its slot, and how often that was taken before. */
static inline uint32_t pw_domain_tag(unsigned i)
{
	return __atomic_load_n(&pw.domain[i].generation, __ATOMIC_RELAXED) * PW_DOMAINS + i;
}

static inline unsigned pw_domain_slot(uint32_t tag) { return tag % PW_DOMAINS; }

/* A region as the helper knows it: caches number their regions independently. */
static inline uint64_t pw_tagged(uint32_t tag, uint64_t id) { return (uint64_t)tag << PW_TAG_SHIFT | id; }

static inline uint64_t pw_clock_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The time stamp counter where the kernel keeps its time by it; the Go side converts. */
static inline uint64_t pw_ticks(void)
{
#ifdef __x86_64__
	if (pw_likely(!pw.ticks_are_ns))
		return __rdtsc();
#endif
	return pw_clock_ns(CLOCK_MONOTONIC);
}

#endif
