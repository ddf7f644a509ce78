/*
 * C threads on a registration cache: a hit happens in C alone (table.h), everything
 * else goes through Go. Access rights are those of enum ibv_access_flags.
 */
#ifndef PINWHEEL_CTABLE_H
#define PINWHEEL_CTABLE_H

#include "table.h"

/* One thread's way into a cache, between ct_open and ct_close. */
struct ct_thread {
	struct pwt_local *local;
	uintptr_t go; /* handle of the regcache.Local */
};

/* From ctable.go. Those that return int return a negative number on failure. */
int ct_open(uintptr_t cache, struct ct_thread *t);
void ct_close(struct ct_thread *t);
int ct_invalidate(uintptr_t cache, void *addr, size_t len);
int ct_get_slow(uintptr_t go, void *addr, size_t len, uint32_t access, struct pwt_ref *ref);
int ct_is_registered_slow(uintptr_t go, void *addr, size_t len, uint32_t access, struct pwt_ref *ref);
void ct_put_slow(uintptr_t go, struct pwt_ref *ref);

/* Returns the regcache.Outcome, of which 0 is a hit, and a counted reference. */
PWT_HOT int ct_get(struct ct_thread *t, void *addr, size_t len, uint32_t access, struct pwt_ref *ref)
{
	if (__builtin_expect(pwt_get(t->local, addr, len, pwt_want(access), ref), 1))
		return 0;
	return ct_get_slow(t->go, addr, len, access, ref);
}

/* Returns 1 and a counted reference if all of the range is registered, else 0. */
PWT_HOT int ct_is_registered(struct ct_thread *t, void *addr, size_t len, uint32_t access, struct pwt_ref *ref)
{
	return pwt_get(t->local, addr, len, pwt_want(access), ref) || ct_is_registered_slow(t->go, addr, len, access, ref);
}

/* Drops a reference, which any thread may have taken. */
PWT_HOT void ct_put(struct ct_thread *t, struct pwt_ref *ref)
{
	if (__builtin_expect(pwt_put(t->local, ref), 0))
		ct_put_slow(t->go, ref);
}

#endif
