/*
 * Sends from a library, unloads it, and sends from another one that is loaded to the same place. With STANDIN_PLUGIN it
 * is such a library. Exits with 77 if the second library came to lie elsewhere.
 */
#include "standin.h"

#ifdef STANDIN_PLUGIN
const char plugin[] = STANDIN_PLUGIN;

int talk(const void *buf, int bytes)
{
	int failed = 0;

	for (int i = 0; i < 2; i++)
		failed += MPI_Send(buf, bytes, &ompi_mpi_byte, 0, 0, &ompi_mpi_comm_world);
	return failed;
}
#else
#include <dlfcn.h>

static char buf[64 << 10];

int main(int argc, char **argv)
{
	int (*talk[2])(const void *, int) = {NULL, NULL};
	int failed = argc != 3;

	for (int i = 0; i < 2 && !failed; i++) {
		void *lib = dlopen(argv[1 + i], RTLD_NOW);

		if (!lib || !(talk[i] = (int (*)(const void *, int))dlsym(lib, "talk")))
			return 1;
		if (i && talk[0] != talk[1])
			return 77;
		if (!i)
			failed += MPI_Init(&argc, &argv);
		failed += talk[i](buf, sizeof(buf));
		if (!i)
			failed += dlclose(lib);
	}
	return failed + MPI_Finalize();
}
#endif
