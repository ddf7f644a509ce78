/*
 * The wrappers of the calls of libibverbs that register memory.
 *
 * Budget of a hit, from ibv_reg_mr to ibv_dereg_mr: no system call, no
 * allocation, no lock, no Go. A first or late use is registered here (miss.c); any other miss asks the
 * server (pw_ask). Memory that was not announced, when it comes for the first time, and what the server refuses
 * goes to libibverbs as if Pinwheel were not there.
 */
#define _GNU_SOURCE
#include <errno.h>

#include "announce.h"
#include "charged.h"
#include "demand.h"
#include "domain.h"
#include "miss.h"
#include "mr.h"
#include "plain.h"
#include "record_ring.h"
#include "report.h"
#include "start.h"
#include "thread.h"
#include "verbslib.h"

#define REREG_TRANSLATION 1 /* enum ibv_rereg_mr_flags */
#define REREG_PD 2
#define REREG_ACCESS 4
#define REREG_FAILED (-1) /* IBV_REREG_MR_ERR_INPUT: the old registration is still good */

#define ON_DEMAND 0x40u /* IBV_ACCESS_ON_DEMAND: pins nothing, so it counts against no budget */
/* Rights that the cache knows how to share: local write, the remote ones, relaxed ordering. */
#define SHAREABLE (0xfu | 1u << 20)

/* Whether the cache of the domain waits for changes of mappings to be noticed. */
static int is_opening(unsigned domain) { return (int)__atomic_load_n(&pw.domain[domain].opening, __ATOMIC_ACQUIRE); }

/* Gets a reference to memory that the table does not have: registers a first or late use, or asks the server. 0 if there is
 * one. */
static __attribute__((noinline)) int register_or_ask(struct pw_thread *t, unsigned domain, void *addr, size_t bytes,
						   unsigned access, const struct pw_announced *announced,
						   struct pwt_ref *ref)
{
	struct pw_mailbox *m = &t->mail;

	m->call = pw_announced_call(announced);
	if (!pw_register_miss(t, domain, (uint64_t)addr, bytes, access, &m->call, ref))
		return 0;
	if (is_opening(domain))
		return -1;
	m->domain = domain;
	m->addr = (uint64_t)addr;
	m->bytes = bytes;
	m->access = access;
	if (pw_ask(t, PW_ASK_ACQUIRE) || m->error)
		return -1;
	*ref = m->ref;
	return 0;
}

/* What the transport takes for its struct ibv_mr. */
static void fill_mr(struct pw_mr_state *r, void *pd, void *addr, size_t bytes)
{
	r->mr.context = ((struct pw_pd *)pd)->context;
	r->mr.pd = pd;
	r->mr.addr = addr;
	r->mr.length = bytes;
	r->mr.handle = ((struct v_mr *)r->ref.desc->handle)->handle;
	r->mr.lkey = (uint32_t)r->ref.keys;
	r->mr.rkey = (uint32_t)(r->ref.keys >> 32);
}

/* Notes how long a hit took, for one use in PW_SAMPLE. */
static inline void sample_path(struct pw_thread *t, struct pw_mr_state *r, int is_hit)
{
	r->path_ticks = 0;
	if (pw_likely(t->next_path--))
		return;
	t->next_path = PW_SAMPLE - 1;
	if (is_hit)
		r->path_ticks = pw_ticks() - r->start_ticks;
}

/* The kernel has refused: deregisters what is idle and tries again. */
static void *retry_plain(struct pw_thread *t, void *pd, void *addr, size_t bytes, uint64_t iova, unsigned access)
{
	int error = errno;

	if (pw_is_managing() && (error == ENOMEM || error == EAGAIN || error == ENOSPC) && !pw_ask(t, PW_ASK_CLEAN)) {
		void *mr = pw.ibv_reg(pd, addr, bytes, iova, access);

		if (mr)
			return mr;
	}
	errno = error;
	return NULL;
}

/* Registers past the cache. */
static void *register_past(struct pw_thread *t, void *pd, void *addr, size_t bytes, uint64_t iova, unsigned access)
{
	int pins = !(access & ON_DEMAND);
	void *mr;

	if (pins) /* UCX and libfabric abort, or try for ever, if their own pools are refused */
		pw_plain_begins(t, addr, bytes);
	mr = pw.ibv_reg(pd, addr, bytes, iova, access);
	if (!mr)
		mr = retry_plain(t, pd, addr, bytes, iova, access);
	if (pins)
		pw_charged(mr, addr, bytes);
	return mr;
}

static void *register_plain(struct pw_thread *t, void *pd, void *addr, size_t bytes, uint64_t iova, unsigned access)
{
	pw_add(&t->plain_calls, 1);
	return register_past(t, pd, addr, bytes, iova, access);
}

/* Notes a registration past the cache that ends before MPI does: pools of the transport stay, so this was for a
 * message, of which nothing else may be known. */
static void note_passed(const struct v_mr *was)
{
	struct pw_thread *t = pw_is_init() && __atomic_load_n(&pw.started, __ATOMIC_ACQUIRE) ? pw_self() : NULL;

	if (!t || was->length < pw.threshold)
		return;
	pw_add(&t->passed, 1);
	pw_add(&t->passed_bytes, was->length);
	pw_note_returned((uint64_t)was->addr, was->length);
}

/* A registration past the cache of a domain that has none yet, in a pw_mr: so what the transport keeps is counted, and
 * the helper hears of the use. */
static int register_early(struct pw_thread *t, struct pw_mr_state *r, void *pd, void *addr, size_t bytes, unsigned access)
{
	struct v_mr *mr = register_plain(t, pd, addr, bytes, (uintptr_t)addr, access);

	if (!mr)
		return -1;
	r->mr = *mr;
	r->ref.desc = NULL;
	r->plain = mr;
	pw_add(&t->early, 1);
	return 0;
}

static uint64_t pages_of(const struct v_mr *mr) { return pw_whole_pages(mr->addr, mr->length) / (pw.page_mask + 1); }

/* A registration for this use alone, in a pw_mr; returns whether there is one. */
static __attribute__((noinline)) int register_on_demand(struct pw_thread *t, struct pw_mr_state *r, void *pd, void *addr,
		size_t bytes, unsigned access)
{
	enum pw_demand why = pw_is_on_demand(r->call.site);
	struct v_mr *mr;
	uint64_t now;

	if (!why || !(mr = register_past(t, pd, addr, bytes, (uintptr_t)addr, access)))
		return 0;
	now = pw_ticks();
	pw_demand_registered((uint64_t)addr, bytes, r->start_ticks, now);
	pw_demand_begins(why, pages_of(mr), now - r->start_ticks);
	r->mr = *mr;
	r->ref = (struct pwt_ref){.id = PW_ON_DEMAND, .keys = now};
	r->plain = mr;
	pw_add(&t->managed, 1);
	return 1;
}

/* Deregisters that. Returns 0 or an errno. */
static int end_on_demand(const struct pw_mr_state *r)
{
	uint64_t start = pw_ticks(), pages = pages_of(&r->mr), now;
	int rc = pw_charge_ends(r->plain, pw_verbs.dereg);

	if (rc)
		return rc;
	now = pw_ticks();
	pw_demand_ends(r->call.site, pages, now - start, now - r->ref.keys);
	pw_demand_used(r->call.site, (uint64_t)r->mr.addr, 0, now);
	return 0;
}

/* A registration for an announced buffer, by a thread that has entered the domain; NULL if there is none. */
static struct pw_mr *acquire_announced(struct pw_thread *t, void *pd, void *addr, size_t bytes, unsigned access,
				       void *caller, const struct pw_announced *announced, uint64_t start_ticks)
{
	int domain = pw_domain_of(pd), is_hit;
	struct pw_mr *h = domain >= 0 ? pw_mr_alloc(t) : NULL;
	struct pw_mr_state *r;
	struct pwt_local *local;

	if (!h)
		return NULL;
	r = &h->state;
	r->call = pw_announced_call(announced);
	r->start_ticks = start_ticks;
	r->domain = pw_domain_tag((unsigned)domain);
	r->access = access;
	local = pw_local(t, (uint32_t)domain);
	is_hit = local && pwt_get(local, addr, bytes, pwt_want(access), &r->ref);
	if (!is_hit) {
		if (caller)
			__atomic_store_n(&pw.caller, (uint64_t)caller, __ATOMIC_RELAXED);
		pw_demand_missed(r->call.site, (uint64_t)addr);
	}
	if (!is_hit && register_on_demand(t, r, pd, addr, bytes, access))
		return h;
	if (!is_hit && register_or_ask(t, (unsigned)domain, addr, bytes, access, announced, &r->ref)) {
		if (register_on_demand(t, r, pd, addr, bytes, access) || /* the question may have begun that */
		    (is_opening((unsigned)domain) && !register_early(t, r, pd, addr, bytes, access)))
			return h;
		pw_mr_free(t, h);
		return NULL;
	}
	if (!is_hit && pw_demand_limit())
		pw_demand_registered((uint64_t)addr, bytes, start_ticks, pw_ticks());
	fill_mr(r, pd, addr, bytes);
	pw_add(&t->managed, 1);
	sample_path(t, r, is_hit);
	return h;
}

/* A registration for an announced buffer, or for memory that comes again; NULL if it is neither, or there is none. */
static struct pw_mr *acquire(struct pw_thread *t, void *pd, void *addr, size_t bytes, unsigned access, void *caller)
{
	uint64_t start_ticks = pw_ticks(), start = (uint64_t)addr, end = start + bytes;
	const struct pw_announced *announced = end < start ? NULL : pw_find_announced(t, start, end);
	struct pw_mr *h;

	if (pw_unlikely(!announced) && !(announced = pw_find_returned(t, start, bytes, caller)))
		return NULL;
	pw_domain_enter(t, pd);
	h = acquire_announced(t, pd, addr, bytes, access, caller, announced, start_ticks);
	pw_domain_leave(t);
	return h;
}

/* Recording: notes memory that no call of the program was given. */
static __attribute__((noinline)) void note_unnamed(struct pw_thread *t, uint64_t start, uint64_t bytes)
{
	const struct pw_announced *announced = start + bytes < start ? NULL : pw_find_announced(t, start, start + bytes);

	if (!announced || announced == &t->internal)
		pw_record_unnamed(t, start, bytes, announced != NULL);
}

/* caller is where the transport called libibverbs. */
static void *register_memory(void *pd, void *addr, size_t bytes, uint64_t iova, unsigned access, void *caller)
{
	struct pw_thread *t;
	void *mr;

	if (pw_is_disabled() || !(t = pw_self()))
		return pw.ibv_reg(pd, addr, bytes, iova, access);
	/* The first large registration after MPI_Init may be the first use of verbs at all. */
	if (pw_is_init() && pw_unlikely(!__atomic_load_n(&pw.started, __ATOMIC_ACQUIRE)))
		pw_start();
	if (pw_recording(t) && pw_is_managing() && bytes >= pw.threshold)
		note_unnamed(t, (uint64_t)addr, bytes);
	if (pw_is_managing() && pw_is_init() && bytes >= pw.threshold && iova == (uintptr_t)addr && !(access & ~SHAREABLE) &&
	    (mr = acquire(t, pd, addr, bytes, access, caller)))
		return mr;
	return register_plain(t, pd, addr, bytes, iova, access);
}

static void put(const struct pw_mr_state *r)
{
	struct pw_thread *t = pw_self();
	uint64_t region = pw_ref_region(&r->ref), start = pw_unlikely(r->path_ticks != 0) ? pw_ticks() : 0;
	uint32_t pages = pw_ref_pages(&r->ref);

	if (!t)
		return; /* the memory stays registered, since there is no memory to do more */
	/* After the put another thread could close the domain. */
	pw_domain_enter(t, r->mr.pd);
	/* First, because the helper cannot deregister memory in use. */
	pw_put(t, pw_domain_slot(r->domain), &r->ref);
	pw_domain_leave(t);
	if (region && pw_unlikely(pw_demand_limit() != 0))
		pw_demand_used(r->call.site, (uint64_t)r->mr.addr, region | (uint64_t)r->domain << 48, pw_ticks());
	if (region && pw_wants_events())
		pw_report(t, r, pw_tagged(r->domain, region), pw_tagged(r->domain, region), pages);
	if (pw_unlikely(start) && r->path_ticks + (start = pw_ticks() - start) < PW_INTERRUPTED) {
		pw_add(&t->path_ticks, r->path_ticks + start);
		pw_add(&t->path_samples, 1);
	}
}

/* Ends a registration. Returns 0, or an errno if it is still there. */
static int deregister(const struct pw_mr_state *r)
{
	if (pw_is_disabled())
		return 0; /* a forked child holds nothing */
	if (pw_unlikely(!r->ref.desc)) {
		struct pw_thread *t = pw_self();

		if (r->ref.id == PW_ON_DEMAND)
			return end_on_demand(r);
		if (r->start_ticks && t && pw_wants_events())
			pw_report_early(t, r);
		return pw_charge_ends(r->plain, pw_verbs.dereg);
	}
	put(r);
	return 0;
}

PW_EXPORT void *ibv_reg_mr(void *pd, void *addr, size_t bytes, int access);
PW_EXPORT void *ibv_reg_mr(void *pd, void *addr, size_t bytes, int access)
{
	pw_verbs_find();
	return register_memory(pd, addr, bytes, (uintptr_t)addr, (unsigned)access, __builtin_return_address(0));
}

/* For the device to know by other addresses: never cached. */
static void *register_elsewhere(void *pd, void *addr, size_t bytes, uint64_t iova, int access)
{
	void *mr;

	if (pw_is_disabled() || (unsigned)access & ON_DEMAND)
		return pw_verbs.reg_iova(pd, addr, bytes, iova, access);
	pw_plain_begins(pw_self(), addr, bytes);
	mr = pw_verbs.reg_iova(pd, addr, bytes, iova, access);
	pw_charged(mr, addr, bytes);
	return mr;
}

PW_EXPORT void *ibv_reg_mr_iova(void *pd, void *addr, size_t bytes, uint64_t iova, int access);
PW_EXPORT void *ibv_reg_mr_iova(void *pd, void *addr, size_t bytes, uint64_t iova, int access)
{
	pw_verbs_find();
	if (iova != (uintptr_t)addr && pw_verbs.reg_iova)
		return register_elsewhere(pd, addr, bytes, iova, access);
	return register_memory(pd, addr, bytes, iova, (unsigned)access, __builtin_return_address(0));
}

PW_EXPORT void *ibv_reg_mr_iova2(void *pd, void *addr, size_t bytes, uint64_t iova, unsigned access);
PW_EXPORT void *ibv_reg_mr_iova2(void *pd, void *addr, size_t bytes, uint64_t iova, unsigned access)
{
	pw_verbs_find();
	return register_memory(pd, addr, bytes, iova, access, __builtin_return_address(0));
}

PW_EXPORT int ibv_dereg_mr(void *mr);
PW_EXPORT int ibv_dereg_mr(void *mr)
{
	struct pw_mr *h = pw_mr_from(mr);
	int rc;

	pw_verbs_find();
	if (!h) {
		struct v_mr was = *(struct v_mr *)mr;

		if (!(rc = pw_charge_ends(mr, pw_verbs.dereg)) && !pw_is_disabled())
			note_passed(&was);
		return rc;
	}
	if (!h->taken)
		return EINVAL;
	rc = deregister(&h->state);
	if (!rc)
		pw_mr_free(pw_self_, h);
	return rc;
}

/* Makes the registration that replaces another, from the cache if possible, else by libibverbs. */
static int replace(struct pw_thread *t, void *pd, void *addr, size_t bytes, unsigned access, struct pw_mr_state *r)
{
	struct pw_mr *h = NULL;
	struct v_mr *mr;

	if (pw_is_managing() && !(access & ~SHAREABLE) && (h = acquire(t, pd, addr, bytes, access, NULL))) {
		*r = h->state;
		pw_mr_free(t, h);
		return 0;
	}
	mr = register_plain(t, pd, addr, bytes, (uintptr_t)addr, access);
	if (!mr)
		return -1;
	*r = (struct pw_mr_state){.mr = *mr, .plain = mr, .access = access};
	return 0;
}

/* Registers anew under the old address of the region. */
PW_EXPORT int ibv_rereg_mr(void *mr, int flags, void *pd, void *addr, size_t bytes, int access);
PW_EXPORT int ibv_rereg_mr(void *mr, int flags, void *pd, void *addr, size_t bytes, int access)
{
	struct pw_mr *h = pw_mr_from(mr);
	struct pw_thread *t = pw_self();
	struct pw_mr_state fresh, old;

	pw_verbs_find();
	if (!h) {
		int rc = pw_verbs.rereg(mr, flags, pd, addr, bytes, access);

		if (!rc && flags & REREG_TRANSLATION && !pw_is_disabled())
			pw_charge_moved(mr, addr, bytes);
		return rc;
	}
	old = h->state;
	if (!(flags & REREG_PD))
		pd = old.mr.pd;
	if (!(flags & REREG_TRANSLATION)) {
		addr = old.mr.addr;
		bytes = old.mr.length;
	}
	if (!(flags & REREG_ACCESS))
		access = (int)old.access;
	if (!h->taken || !flags || flags & ~(REREG_TRANSLATION | REREG_PD | REREG_ACCESS) || !pd || !bytes) {
		errno = EINVAL;
		return REREG_FAILED;
	}
	if (!t || replace(t, pd, addr, bytes, (unsigned)access, &fresh))
		return REREG_FAILED;
	h->state = fresh;
	deregister(&old); /* the transport could do nothing about a failure */
	return 0;
}

PW_EXPORT int ibv_dealloc_pd(void *pd);
PW_EXPORT int ibv_dealloc_pd(void *pd)
{
	pw_verbs_find();
	if (!pw_is_disabled())
		pw_domain_close(pd);
	return pw_verbs.dealloc_pd(pd);
}

PW_EXPORT int ibv_close_device(void *context);
PW_EXPORT int ibv_close_device(void *context)
{
	pw_verbs_find();
	if (!pw_is_disabled())
		pw_domain_close_all(context);
	return pw_verbs.close_device(context);
}
