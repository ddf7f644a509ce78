/*
 * A registration cache for C: hits in C alone (../table.h), everything else
 * through Go. The operations are those of the 2009 proposal "New proposal for
 * memory management" on the OpenFabrics list, with the cache in the process.
 *
 * Access rights are those of enum ibv_access_flags. Functions that can fail
 * return a negative errno: ENOMEM (out of pinned memory, with nothing idle left
 * to evict), ENOSPC (out of regions), EFAULT (not mapped for this access), EPERM,
 * EINVAL, EAGAIN, EBUSY (in use), ENOENT (unknown), ESHUTDOWN (closed), EIO.
 */
#ifndef PINWHEEL_CFRONT_H
#define PINWHEEL_CFRONT_H

#include "../table.h"

typedef uint64_t pwc_cache; /* from Go: cfront.Export */

/* How a request was served. */
enum { PWC_HIT, PWC_WAITED, PWC_FIRST, PWC_LATE };

/* The calling thread's way into a cache; NULL if there is no memory. It is
 * given back when the thread ends. */
struct pwt_front *pwc_attach(pwc_cache cache);

struct pwc_tls {
	pwc_cache cache;
	struct pwt_front *front;
};
extern __thread struct pwc_tls pwc_tls __attribute__((tls_model("initial-exec")));

PWT_HOT struct pwt_front *pwc_thread(pwc_cache cache)
{
	return __builtin_expect(pwc_tls.cache == cache, 1) ? pwc_tls.front : pwc_attach(cache);
}

/* Not for the path of a hit: these call Go. */
int pwc_get_slow(struct pwt_front *f, void *addr, size_t len, uint32_t access, struct pwt_ref *ref);
void pwc_put_slow(struct pwt_front *f, struct pwt_ref *ref);

/* Register with the cached flag: returns how, and a counted reference that
 * any thread may put. A hit makes no system call, takes no lock, does not call Go. */
PWT_HOT int pwc_get(struct pwt_front *f, void *addr, size_t len, uint32_t access, struct pwt_ref *ref)
{
	if (__builtin_expect(pwt_get(f, addr, len, pwt_want(access), ref), 1))
		return PWC_HIT;
	return pwc_get_slow(f, addr, len, access, ref);
}

/* Deregister: drops the reference; what is cached stays registered. */
PWT_HOT void pwc_put(struct pwt_front *f, struct pwt_ref *ref)
{
	if (__builtin_expect(pwt_put(f, ref), 0))
		pwc_put_slow(f, ref);
}

/* Is all of it registered? 1 and a counted reference, or 0. Registers nothing. */
int pwc_is_registered_slow(struct pwt_front *f, void *addr, size_t len, uint32_t access, struct pwt_ref *ref);

PWT_HOT int pwc_is_registered(struct pwt_front *f, void *addr, size_t len, uint32_t access, struct pwt_ref *ref)
{
	return pwt_get(f, addr, len, pwt_want(access), ref) || pwc_is_registered_slow(f, addr, len, access, ref);
}

/* Register without the cached flag, evicting idle entries of all caches of the
 * process on ENOMEM. The last put deregisters. */
int pwc_get_uncached(struct pwt_front *f, void *addr, size_t len, uint32_t access, struct pwt_ref *ref);

/* Limits of one cache; UINT64_MAX is none. Evicts what is idle until it fits. */
int pwc_limits(pwc_cache cache, uint64_t bytes, uint64_t regions);

/* Deregisters everything idle, now; returns how many registrations. */
int pwc_clean(pwc_cache cache);

/* The mapping of the range changes or has changed. */
int pwc_invalidate(pwc_cache cache, void *addr, size_t len);

/* The helper's operations, on a region ID. */
int pwc_register_region(pwc_cache cache, uint64_t id);
int pwc_deregister_region(pwc_cache cache, uint64_t id);

static inline uint32_t pwc_lkey(const struct pwt_ref *ref) { return (uint32_t)ref->keys; }
static inline uint32_t pwc_rkey(const struct pwt_ref *ref) { return (uint32_t)(ref->keys >> 32); }

/* The region's ID for the helper; 0 for a registration that is not cached. */
static inline uint64_t pwc_id(const struct pwt_ref *ref) { return ref->id ? ref->id : ref->desc->id; }

/* From cfront.go, for cfront.c only. */
struct pwt_front *pwc_front_open(pwc_cache cache);
void pwc_front_close(struct pwt_front *f);

#endif
