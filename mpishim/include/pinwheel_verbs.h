/*
 * pinwheel_verbs.h - domains of <pinwheel.h> that are protection domains of
 * libibverbs. All of it is inline: the transport links libibverbs, Pinwheel does
 * not. The handle of a use is its struct ibv_mr.
 */
#ifndef PINWHEEL_VERBS_H
#define PINWHEEL_VERBS_H

#include <errno.h>
#include <infiniband/verbs.h>
#include <pinwheel.h>

static inline int pinwheel_verbs_reg(void *pd, void *addr, size_t len, unsigned access, struct pinwheel_region *region)
{
	struct ibv_mr *mr = ibv_reg_mr((struct ibv_pd *)pd, addr, len, (int)access);

	if (!mr)
		return errno ? -errno : -EIO;
	region->handle = mr;
	region->lkey = mr->lkey;
	region->rkey = mr->rkey;
	return 0;
}

static inline int pinwheel_verbs_dereg(void *pd, void *handle)
{
	(void)pd;
	return -ibv_dereg_mr((struct ibv_mr *)handle);
}

/* pinwheel_domain_open for a protection domain; close it before ibv_dealloc_pd. */
static inline int pinwheel_domain_open_verbs(struct pinwheel *pw, struct ibv_pd *pd, struct pinwheel_domain **domain)
{
	struct pinwheel_ops ops;

	ops.size = sizeof ops;
	ops.reg = pinwheel_verbs_reg;
	ops.dereg = pinwheel_verbs_dereg;
	return pinwheel_domain_open(pw, &ops, pd, domain);
}

#endif
