/*
 * The constructor and the destructor of libpinwheel.so. A preloaded library also comes into
 * processes that are no ranks, and its provider is the libibverbs of the transport.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>

#include "abi.h" /* struct v_mr: struct ibv_mr */
#include "caches.h"
#include "init.h"
#include "recording.h"

static int is_named(const char *const *names)
{
	for (; *names; names++)
		if (!strcmp(program_invocation_short_name, *names))
			return 1;
	return 0;
}

/* Launchers start the ranks. They register nothing, and a Go runtime would disturb them. A user starts a
 * launcher and has preloaded it by mistake. A launcher, or a rank without one, starts the daemons, which
 * inherit the preload. */
static const char *const launchers[] = {"mpirun",	  "mpiexec",	     "orterun",	     "prterun",
					 "srun",	  "mpiexec.hydra",   "mpirun.mpich", "mpiexec.mpich",
					 "mpirun.openmpi", "mpiexec.openmpi", NULL};
static const char *const daemons[] = {"orted",		  "prted",  "prte", "slurmstepd", "hydra_pmi_proxy",
				      "hydra_bstrap_proxy", NULL};

static int provide(void *pd, void *addr, size_t bytes, unsigned access, struct pw_region *made)
{
	struct v_mr *mr;

	errno = 0;
	mr = pw.ibv_reg(pd, addr, bytes, (uintptr_t)addr, access);
	if (!mr)
		return errno ? errno : EIO;
	*made = (struct pw_region){.handle = mr, .lkey = mr->lkey, .rkey = mr->rkey};
	return 0;
}

static int withdraw(void *pd, void *mr)
{
	(void)pd;
	return pw.ibv_dereg(mr);
}

__attribute__((constructor)) static void loaded(void)
{
	pw.register_region = provide;
	pw.deregister_region = withdraw;
	if (is_named(daemons))
		pw_disable();
	if (is_named(launchers)) {
		pw_disable();
		pw_warn("preloaded into the launcher %s, which has nothing to register; "
			"it is meant for the ranks (pinwheel run sees to that)",
			program_invocation_short_name);
	}
	pw_prepare();
	if (!pw_is_disabled())
		pw_leave_caches();
}

__attribute__((destructor)) static void unloaded(void)
{
	pw_record_exit();
	pw_exit();
	if (pw_uses_verbs() && pw.rank < 0 && !pw_is_disabled())
		pw_warn("verbs were used but no call of MPI was seen (is MPI linked statically?); nothing was managed");
}
