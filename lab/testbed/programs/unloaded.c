/*
 * Sends from the data segment of a library, closes the library, and opens it again: mostly at the same address, with
 * other pages. The library is this file, compiled with -DMODULE, beside the program.
 */
#include <stdint.h>

#ifdef MODULE
uint64_t unloaded_data[128 << 10] = {1}, unloaded_zeroes[128 << 10]; /* of the file, and of none */
#else
#include <dlfcn.h>

#include "check.h"

int main(int argc, char **argv)
{
	char path[4096];
	int steps = (int)check_arg(argc, argv, 1, 6);
	size_t n = 128 << 10;

	snprintf(path, sizeof(path), "%s.so", argv[0]);
	check_begin(&argc, &argv);
	uint64_t *own = check_alloc(n);

	for (int s = 0; s < steps; s++) {
		void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
		uint64_t *data = library ? dlsym(library, "unloaded_data") : NULL;
		uint64_t *zeroes = library ? dlsym(library, "unloaded_zeroes") : NULL;

		if (!data || !zeroes) {
			fprintf(stderr, "%s\n", dlerror());
			MPI_Abort(MPI_COMM_WORLD, 3);
		}
		if (data[0] != 1 || zeroes[0] != 0) /* it was not unloaded: nothing is tested */
			check_errors++;
		check_exchange(data, own, n, s, 0);
		check_exchange(own, zeroes, n, s, 1);
		check_exchange(zeroes, data, n, s, 2);
		dlclose(library);
	}
	return check_end("unloaded");
}
#endif
