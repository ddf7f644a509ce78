/*
 * Wrappers of the calls of libmlx5 that pin memory without libibverbs: queues, doorbells and keys that a transport
 * makes by commands of its own. They are long-lived, so they are counted and never cached.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>

#include "charged.h"
#include "plain.h"
#include "thread.h"
#include "verbslib.h"

#define ON_DEMAND 0x40u /* IBV_ACCESS_ON_DEMAND */
#define DMABUF 1u	/* MLX5DV_UMEM_MASK_DMABUF */

struct umem_in { /* struct mlx5dv_devx_umem_in */
	void *addr;
	size_t bytes;
	uint32_t access;
	uint64_t page_sizes;
	uint64_t comp_mask;
	int dmabuf_fd;
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct {
	void *(*reg)(void *context, void *addr, size_t bytes, uint32_t access);
	void *(*reg_ex)(void *context, struct umem_in *in);
	int (*dereg)(void *umem);
} mlx5;

static void find(void)
{
	/* Loaded as a plug-in's dependency, libmlx5 is not in our scope. */
	void *lib = dlopen("libmlx5.so.1", RTLD_LAZY | RTLD_NOLOAD);

	mlx5.reg = pw_versioned(lib, "mlx5dv_devx_umem_reg", "MLX5_1.7");
	mlx5.reg_ex = pw_versioned(lib, "mlx5dv_devx_umem_reg_ex", "MLX5_1.19");
	mlx5.dereg = pw_versioned(lib, "mlx5dv_devx_umem_dereg", "MLX5_1.7");
}

/* Whether the kernel pins pages of the process, and they are to be counted. */
static int pins(uint32_t access) { return !(access & ON_DEMAND) && !pw_is_disabled(); }

static void *not_there(void)
{
	errno = EOPNOTSUPP;
	return NULL;
}

PW_EXPORT void *mlx5dv_devx_umem_reg(void *context, void *addr, size_t bytes, uint32_t access);
PW_EXPORT void *mlx5dv_devx_umem_reg(void *context, void *addr, size_t bytes, uint32_t access)
{
	void *umem;

	pthread_once(&once, find);
	if (!mlx5.reg)
		return not_there();
	if (!pins(access))
		return mlx5.reg(context, addr, bytes, access);
	pw_plain_begins(pw_self(), addr, bytes);
	umem = mlx5.reg(context, addr, bytes, access);
	pw_charged(umem, addr, bytes);
	return umem;
}

PW_EXPORT void *mlx5dv_devx_umem_reg_ex(void *context, struct umem_in *in);
PW_EXPORT void *mlx5dv_devx_umem_reg_ex(void *context, struct umem_in *in)
{
	void *umem;

	pthread_once(&once, find);
	if (!mlx5.reg_ex)
		return not_there();
	if (!pins(in->access) || in->comp_mask & DMABUF)
		return mlx5.reg_ex(context, in);
	pw_plain_begins(pw_self(), in->addr, in->bytes);
	umem = mlx5.reg_ex(context, in);
	pw_charged(umem, in->addr, in->bytes);
	return umem;
}

PW_EXPORT int mlx5dv_devx_umem_dereg(void *umem);
PW_EXPORT int mlx5dv_devx_umem_dereg(void *umem)
{
	pthread_once(&once, find);
	if (!mlx5.dereg)
		return EOPNOTSUPP;
	return pw_charge_ends(umem, mlx5.dereg);
}
