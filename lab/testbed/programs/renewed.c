/*
 * Buffers that are freed and allocated anew between two exchanges, so that the
 * same addresses get other pages: malloc and free, mmap and munmap, mmap over
 * the old place, MADV_DONTNEED, mremap. A registration of the old pages would send
 * old data, and receive into nowhere.
 */
#define _GNU_SOURCE
#include <sys/mman.h>

#include "check.h"

static size_t bytes;

static void *map_at(void *at)
{
	void *p = mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0), -1, 0);

	if (p == MAP_FAILED)
		MPI_Abort(MPI_COMM_WORLD, 3);
	return p;
}

static void exchange(uint64_t *out, uint64_t *in, int step, int what)
{
	check_exchange(out, in, bytes / 8, step, what);
}

int main(int argc, char **argv)
{
	int steps = (int)check_arg(argc, argv, 1, 4);

	bytes = (size_t)check_arg(argc, argv, 2, 256 << 10);
	check_begin(&argc, &argv);
	uint64_t *fixed = map_at(NULL), *discarded = map_at(NULL), *moving = map_at(NULL), *home = map_at(NULL);

	for (int s = 0; s < steps; s++) {
		uint64_t *out = malloc(bytes), *in = malloc(bytes);

		exchange(out, in, s, 0);
		free(out);
		free(in);
		out = map_at(NULL), in = map_at(NULL);
		exchange(out, in, s, 1);
		munmap(out, bytes);
		munmap(in, bytes);

		in = map_at(NULL);
		exchange(fixed, in, s, 2);
		map_at(fixed);
		exchange(fixed, in, s, 3);

		exchange(discarded, in, s, 4);
		madvise(discarded, bytes, MADV_DONTNEED);
		exchange(in, discarded, s, 5);

		/* Away from its address, and other pages there; then back. */
		exchange(moving, in, s, 6);
		out = mremap(moving, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, home);
		map_at(moving);
		exchange(moving, out, s, 7);
		exchange(out, moving, s, 8);
		munmap(in, bytes);
	}
	return check_end("renewed");
}
