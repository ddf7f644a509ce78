/*
 * Buffers in huge pages (MAP_HUGETLB), of odd sizes and at odd offsets, that are unmapped and mapped anew, also at the
 * same place. Without huge pages of hugetlbfs (vm.nr_hugepages), transparent ones.
 */
#define _GNU_SOURCE
#include <sys/mman.h>

#include "check.h"

#define HUGE (2UL << 20)

static void *map(void *at, size_t bytes)
{
	static int none; /* hugetlbfs has no pages */
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0);
	char *p = none ? MAP_FAILED : mmap(at, bytes, PROT_READ | PROT_WRITE, flags | MAP_HUGETLB, -1, 0);

	if (p != MAP_FAILED)
		return p;
	none = 1;
	if (at)
		p = mmap(at, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
	else {
		p = mmap(NULL, bytes + HUGE, PROT_READ | PROT_WRITE, flags, -1, 0);
		if (p != MAP_FAILED)
			p += -(uintptr_t)p % HUGE;
	}
	if (p == MAP_FAILED)
		MPI_Abort(MPI_COMM_WORLD, 3);
	madvise(p, bytes, MADV_HUGEPAGE);
	return p;
}

int main(int argc, char **argv)
{
	int steps = (int)check_arg(argc, argv, 1, 3);
	static const size_t words[] = {2049, 8191, (3 << 20) / 8 - 1, (2 << 20) / 8 + 513, (5 << 20) / 8 + 1, 70001};
	size_t bytes = 4 * HUGE;

	check_begin(&argc, &argv);
	uint64_t *stays = map(NULL, bytes), *renewed = map(NULL, bytes);

	for (int s = 0; s < steps; s++) {
		uint64_t *fresh = map(NULL, bytes);

		for (int i = 0; i < (int)(sizeof(words) / sizeof(*words)); i++) {
			size_t n = words[i], odd = 7 * i + 1;

			check_exchange(stays + odd, fresh + odd, n, s, i);
			check_exchange(renewed, stays + HUGE / 8 - odd, n, s, 16 + i);
			check_exchange(fresh + odd, renewed + odd, n, s, 32 + i);
		}
		munmap(fresh, bytes);
		map(renewed, bytes); /* other pages at the same place */
	}
	return check_end("hugepages");
}
