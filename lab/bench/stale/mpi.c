#define _GNU_SOURCE
#include "changes.h"
#include <dlfcn.h>
#include <errno.h>
#include <string.h>

static int (*finalize)(void);

int mpi_start(void)
{
	unsigned char before[16];
	void *f = dlsym(RTLD_DEFAULT, "munmap");
	memcpy(before, f, sizeof(before));
	void *mpi = dlopen("libmpi.so.40", RTLD_NOW | RTLD_GLOBAL);
	if (!mpi)
		return -ENOENT;
	int (*init)(int *, char ***) = (int (*)(int *, char ***))dlsym(mpi, "MPI_Init");
	finalize = (int (*)(void))dlsym(mpi, "MPI_Finalize");
	if (!init || !finalize || init(NULL, NULL))
		return -EIO;
	return memcmp(before, f, sizeof(before)) ? 0 : -ENOTSUP;
}

void mpi_end(void)
{
	if (finalize)
		finalize();
}
