/* A stand-in for libmlx5's registrations without libibverbs. Nothing is pinned. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

struct umem_in;

int standin_busy, standin_umems;

static void *make(void)
{
	standin_umems++;
	return malloc(1);
}

void *mlx5dv_devx_umem_reg(void *context, void *addr, size_t bytes, uint32_t access)
{
	(void)context, (void)addr, (void)access;
	if (bytes)
		return make();
	errno = EINVAL;
	return NULL;
}

void *mlx5dv_devx_umem_reg_ex(void *context, struct umem_in *in) { return (void)context, (void)in, make(); }

int mlx5dv_devx_umem_dereg(void *umem)
{
	if (standin_busy)
		return EBUSY;
	standin_umems--;
	free(umem);
	return 0;
}
