/* Finds the libibverbs behind us at run time, since the program or a plug-in brings it. */
#define _GNU_SOURCE
#include <dlfcn.h>

#include "verbslib.h"

struct pw_verbs pw_verbs;
pthread_once_t pw_verbs_once = PTHREAD_ONCE_INIT;

void *pw_versioned(void *lib, const char *name, const char *version)
{
	void *f = lib ? dlvsym(lib, name, version) : NULL;

	if (!f)
		f = dlvsym(RTLD_NEXT, name, version);
	if (!f && lib)
		f = dlsym(lib, name);
	return f;
}

/* For libraries without iova2 (rdma-core before 28): those pass the identity only. */
static void *reg_identity(void *pd, void *addr, size_t bytes, uint64_t iova, unsigned access)
{
	(void)iova;
	return pw_verbs.reg(pd, addr, bytes, (int)access);
}

void pw_verbs_resolve(void)
{
	/* Loaded as a plug-in's dependency, libibverbs is not in our scope. */
	void *lib = dlopen("libibverbs.so.1", RTLD_LAZY | RTLD_NOLOAD);

	pw_verbs.reg = pw_versioned(lib, "ibv_reg_mr", "IBVERBS_1.1");
	pw_verbs.reg_iova = pw_versioned(lib, "ibv_reg_mr_iova", "IBVERBS_1.7");
	pw_verbs.reg_iova2 = pw_versioned(lib, "ibv_reg_mr_iova2", "IBVERBS_1.8");
	pw_verbs.reg_ex = pw_versioned(lib, "ibv_reg_mr_ex", "IBVERBS_1.15");
	pw_verbs.rereg = pw_versioned(lib, "ibv_rereg_mr", "IBVERBS_1.1");
	pw_verbs.dereg = pw_versioned(lib, "ibv_dereg_mr", "IBVERBS_1.1");
	pw_verbs.dealloc_pd = pw_versioned(lib, "ibv_dealloc_pd", "IBVERBS_1.1");
	pw_verbs.close_device = pw_versioned(lib, "ibv_close_device", "IBVERBS_1.1");
	pw.ibv_reg = pw_verbs.reg_iova2 ? pw_verbs.reg_iova2 : reg_identity;
	pw.ibv_dereg = pw_verbs.dereg;
	if (!pw_verbs.reg || !pw_verbs.dereg || !pw_verbs.dealloc_pd) {
		pw_disable();
		pw_warn("no libibverbs that is known here; going on without Pinwheel");
	}
	__atomic_store_n(&pw.verbs_used, 1, __ATOMIC_RELEASE);
}
