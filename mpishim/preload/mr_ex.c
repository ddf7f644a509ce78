/*
 * The wrapper of ibv_reg_mr_ex (libibverbs 1.15), which makes regions of several kinds. It is counted and never cached:
 * a region of the cache has none of the attributes that only this call knows.
 */
#define _GNU_SOURCE
#include <errno.h>

#include "charged.h"
#include "plain.h"
#include "thread.h"
#include "verbslib.h"

#define ON_DEMAND 0x40	 /* IBV_ACCESS_ON_DEMAND */
#define OF_DMABUF (1u << 2) /* IBV_REG_MR_MASK_FD */

struct mr_attr { /* the beginning of struct ibv_mr_init_attr */
	size_t bytes;
	int access;
	uint64_t comp_mask;
	uint64_t iova;
	void *addr;
};

/* Whether pages of the process are pinned, and are to be counted. Buffers of ibv_alloc_buf count, which may be others:
 * they don't say what they are made of. */
static int pins(const struct mr_attr *a)
{
	return !(a->access & ON_DEMAND) && !(a->comp_mask & OF_DMABUF) && !pw_is_disabled();
}

PW_EXPORT void *ibv_reg_mr_ex(void *pd, struct mr_attr *attr);
PW_EXPORT void *ibv_reg_mr_ex(void *pd, struct mr_attr *attr)
{
	void *mr;

	pw_verbs_find();
	if (!pw_verbs.reg_ex) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if (!pins(attr))
		return pw_verbs.reg_ex(pd, attr);
	pw_plain_begins(pw_self(), attr->addr, attr->bytes);
	mr = pw_verbs.reg_ex(pd, attr);
	pw_charged(mr, attr->addr, attr->bytes);
	return mr;
}
