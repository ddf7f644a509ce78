/*
 * The calls of libibverbs that register memory.
 *
 * Budget of a hit, from ibv_reg_mr to ibv_dereg_mr: no system call, no
 * allocation, no lock, no Go. What isn't a hit asks the server (pw_ask); what isn't
 * for us, or can't be had from it, goes to libibverbs as if we weren't there.
 */
#define _GNU_SOURCE
#include <errno.h>

#include "handle.h"
#include "release.h"
#include "verbslib.h"

#define REREG_TRANSLATION 1 /* enum ibv_rereg_mr_flags */
#define REREG_PD 2
#define REREG_ACCESS 4
#define REREG_FAILED (-1) /* IBV_REREG_MR_ERR_INPUT: the old registration is still good */

/* Rights that the cache knows how to share: local write, the remote ones, relaxed ordering. */
#define SHAREABLE (0xfu | 1u << 20)

/* struct ibv_pd begins with its context. */
struct pd_head {
	void *context;
};

/* The index of a protection domain, which it is given if it has none; -1 if there are too many. */
static int domain_of(void *pd)
{
	for (unsigned i = 0; i < PW_DOMAINS; i++) {
		void *at = __atomic_load_n(&pw.domain[i].pd, __ATOMIC_ACQUIRE);

		if (!at && __atomic_compare_exchange_n(&pw.domain[i].pd, &at, pd, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			return (int)i;
		if (at == pd)
			return __atomic_load_n(&pw.domain[i].closing, __ATOMIC_ACQUIRE) ? -1 : (int)i;
	}
	return -1;
}

/* A managed registration; NULL if this one is not for us. */
static struct pw_handle *acquire(struct pw_thread *t, void *pd, void *addr, size_t bytes, unsigned access)
{
	uint64_t start = pw_ticks();
	struct pw_post *post = pw_find_post(t, (uint64_t)addr, (uint64_t)addr + bytes);
	int d = post ? domain_of(pd) : -1;
	struct pw_handle *h;
	int asked = 0;

	if (d < 0 || !(h = pw_handle_take(t)))
		return NULL;
	if (!t->front[d] || !pwt_get(t->front[d], addr, bytes, pwt_want(access), &h->ref)) {
		struct pw_mailbox *m = &t->mail;

		m->domain = (uint32_t)d;
		m->addr = (uint64_t)addr;
		m->bytes = bytes;
		m->access = access;
		asked = 1;
		if (pw_ask(t, PW_ASK_ACQUIRE) || m->error) {
			pw_handle_give(t, h);
			return NULL;
		}
		h->ref = m->ref;
	}
	h->mr.context = ((struct pd_head *)pd)->context;
	h->mr.pd = pd;
	h->mr.addr = addr;
	h->mr.length = bytes;
	h->mr.handle = ((struct v_mr *)h->ref.desc->handle)->handle;
	h->mr.lkey = (uint32_t)h->ref.keys;
	h->mr.rkey = (uint32_t)(h->ref.keys >> 32);
	h->start_ticks = start;
	h->domain = (uint32_t)d;
	h->access = access;
	h->seq = post->seq;
	h->op = post->op;
	h->site = post->site;
	t->managed++;
	h->path_ticks = 0;
	if (pw_unlikely(!t->next_path--)) {
		t->next_path = PW_SAMPLE - 1;
		if (!asked)
			h->path_ticks = pw_ticks() - start;
	}
	return h;
}

/* The kernel refused: what is registered and idle makes room. */
static void *retry_plain(struct pw_thread *t, void *pd, void *addr, size_t bytes, uint64_t iova, unsigned access)
{
	int error = errno;

	if (pw.mode == PW_MANAGED && (error == ENOMEM || error == EAGAIN || error == ENOSPC) && !pw_ask(t, PW_ASK_CLEAN)) {
		void *mr = pw.reg(pd, addr, bytes, iova, access);

		if (mr)
			return mr;
	}
	errno = error;
	return NULL;
}

static void *register_memory(void *pd, void *addr, size_t bytes, uint64_t iova, unsigned access)
{
	struct pw_thread *t;
	void *mr;

	if (pw_disabled || !(t = pw_self()))
		return pw.reg(pd, addr, bytes, iova, access);
	/* The first large registration after MPI_Init may be the first use of verbs at all. */
	if (pw_unlikely(pw.is_init && !__atomic_load_n(&pw.started, __ATOMIC_ACQUIRE)))
		pw_start();
	if (pw_likely(pw.mode == PW_MANAGED && pw.is_init && bytes >= pw.threshold && iova == (uintptr_t)addr &&
		      !(access & ~SHAREABLE)) &&
	    (mr = acquire(t, pd, addr, bytes, access)))
		return mr;
	t->plain_calls++;
	mr = pw.reg(pd, addr, bytes, iova, access);
	return mr ? mr : retry_plain(t, pd, addr, bytes, iova, access);
}

/* Whether the helper has heard of this use: a transport that repeats one send registers over and over. */
static int is_told(struct pw_thread *t, uint64_t region, uint64_t seq)
{
	unsigned i = (unsigned)(region * 0x9e3779b97f4a7c15ull >> 58); /* PW_TOLD is 2^6 */

	if (t->told[i].region == region && t->told[i].seq == seq)
		return 1;
	t->told[i].region = region;
	t->told[i].seq = seq;
	return 0;
}

static void tell(struct pw_thread *t, const struct pw_handle *h, uint64_t region, uint32_t pages)
{
	if (is_told(t, region, h->seq)) {
		t->collapsed++;
		return;
	}
	pw_tell(t, &(struct pw_event){
			   .region = region,
			   .start = (uint64_t)h->mr.addr,
			   .end = (uint64_t)h->mr.addr + h->mr.length,
			   .start_ticks = h->start_ticks,
			   .end_ticks = pw_ticks(),
			   .site = h->site,
			   .op = (uint32_t)h->op,
			   .pages = pages,
		   });
}

static void drop(struct pw_handle *h)
{
	struct pw_thread *t = pw_self();
	uint64_t region = pw_ref_region(&h->ref), start = pw_unlikely(h->path_ticks != 0) ? pw_ticks() : 0;
	uint32_t pages = pw_ref_pages(&h->ref);

	if (!t)
		return; /* stays registered: there is no memory for anything else */
	/* First of all: the helper can't deregister what is in use. */
	pw_drop(t, h->domain, &h->ref);
	if (region && pw_likely(pw.want_events))
		tell(t, h, region | (uint64_t)h->domain << 48, pages);
	if (pw_unlikely(start) && h->path_ticks + (start = pw_ticks() - start) < PW_INTERRUPTED) {
		t->path_ticks += h->path_ticks + start;
		t->path_samples++;
	}
}

PW_EXPORT void *ibv_reg_mr(void *pd, void *addr, size_t bytes, int access);
PW_EXPORT void *ibv_reg_mr(void *pd, void *addr, size_t bytes, int access)
{
	pw_verbs_find();
	return register_memory(pd, addr, bytes, (uintptr_t)addr, (unsigned)access);
}

PW_EXPORT void *ibv_reg_mr_iova(void *pd, void *addr, size_t bytes, uint64_t iova, int access);
PW_EXPORT void *ibv_reg_mr_iova(void *pd, void *addr, size_t bytes, uint64_t iova, int access)
{
	pw_verbs_find();
	if (iova != (uintptr_t)addr && pw_verbs.reg_iova)
		return pw_verbs.reg_iova(pd, addr, bytes, iova, access);
	return register_memory(pd, addr, bytes, iova, (unsigned)access);
}

PW_EXPORT void *ibv_reg_mr_iova2(void *pd, void *addr, size_t bytes, uint64_t iova, unsigned access);
PW_EXPORT void *ibv_reg_mr_iova2(void *pd, void *addr, size_t bytes, uint64_t iova, unsigned access)
{
	pw_verbs_find();
	return register_memory(pd, addr, bytes, iova, access);
}

PW_EXPORT int ibv_dereg_mr(void *mr);
PW_EXPORT int ibv_dereg_mr(void *mr)
{
	struct pw_handle *h = pw_handle_of(mr);

	pw_verbs_find();
	if (!h)
		return pw_verbs.dereg(mr);
	if (!h->taken)
		return EINVAL;
	if (!pw_disabled) /* the child of a fork has nothing to give back */
		drop(h);
	pw_handle_give(pw_self_, h);
	return 0;
}

/* A new registration in place of the old one, under the old handle. */
PW_EXPORT int ibv_rereg_mr(void *mr, int flags, void *pd, void *addr, size_t bytes, int access);
PW_EXPORT int ibv_rereg_mr(void *mr, int flags, void *pd, void *addr, size_t bytes, int access)
{
	struct pw_handle *h = pw_handle_of(mr), *fresh, old;
	struct pw_thread *t = pw_self();

	pw_verbs_find();
	if (!h)
		return pw_verbs.rereg(mr, flags, pd, addr, bytes, access);
	if (!(flags & REREG_PD))
		pd = h->mr.pd;
	if (!(flags & REREG_TRANSLATION)) {
		addr = h->mr.addr;
		bytes = h->mr.length;
	}
	if (!(flags & REREG_ACCESS))
		access = (int)h->access;
	/* The handle is ours and stays so: what can't be managed can't take its place. */
	if (!t || pw.mode != PW_MANAGED || (unsigned)access & ~SHAREABLE ||
	    !(fresh = acquire(t, pd, addr, bytes, (unsigned)access))) {
		errno = EINVAL;
		return REREG_FAILED;
	}
	old = *h;
	fresh->next = h->next;
	*h = *fresh;
	h->taken = 1;
	drop(&old);
	pw_handle_give(t, fresh);
	return 0;
}

/* The cache of a protection domain would keep it busy. */
static void close_domain(unsigned i)
{
	struct pw_thread *t = pw_self();

	if (__atomic_exchange_n(&pw.domain[i].closing, 1, __ATOMIC_ACQ_REL) || !t)
		return;
	t->mail.domain = i;
	pw_ask(t, PW_ASK_CLOSE);
	/* Its place is not used again: threads still have fronts of its cache. */
	__atomic_store_n(&pw.domain[i].pd, (void *)-1, __ATOMIC_RELEASE);
}

static int is_open(unsigned i)
{
	void *pd = __atomic_load_n(&pw.domain[i].pd, __ATOMIC_ACQUIRE);

	return pd && pd != (void *)-1;
}

PW_EXPORT int ibv_dealloc_pd(void *pd);
PW_EXPORT int ibv_dealloc_pd(void *pd)
{
	pw_verbs_find();
	for (unsigned i = 0; !pw_disabled && i < PW_DOMAINS; i++)
		if (is_open(i) && pw.domain[i].pd == pd)
			close_domain(i);
	return pw_verbs.dealloc_pd(pd);
}

PW_EXPORT int ibv_close_device(void *context);
PW_EXPORT int ibv_close_device(void *context)
{
	pw_verbs_find();
	for (unsigned i = 0; !pw_disabled && i < PW_DOMAINS; i++)
		if (is_open(i) && ((struct pd_head *)pw.domain[i].pd)->context == context)
			close_domain(i);
	return pw_verbs.close_device(context);
}
