/* Memory that the program moves to a place of its choice, by mremap with MREMAP_FIXED, and sends from there. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <sys/mman.h>

#include "check.h"

#define WORDS (128u << 10)

int main(int argc, char **argv)
{
	check_begin(&argc, &argv);
	int left = (check_rank + check_size - 1) % check_size, right = (check_rank + 1) % check_size;
	uint64_t *b = check_alloc(WORDS);

	for (int s = 0; s < 4; s++) {
		uint64_t *from = check_map(WORDS), *to = check_map(WORDS), *at;

		check_fill(from, WORDS, check_rank, s, 0);
		MPI_Sendrecv(from, WORDS, MPI_UINT64_T, right, 0, b, WORDS, MPI_UINT64_T, left, 0, MPI_COMM_WORLD,
			     MPI_STATUS_IGNORE);
		at = mremap(from, WORDS * 8, WORDS * 8, MREMAP_MAYMOVE | MREMAP_FIXED, to);
		if (at != to) {
			fprintf(stderr, "rank %d: moved to %p, not to %p\n", check_rank, (void *)at, (void *)to);
			check_errors++;
			break;
		}
		MPI_Sendrecv(to, WORDS, MPI_UINT64_T, right, 0, b, WORDS, MPI_UINT64_T, left, 0, MPI_COMM_WORLD,
			     MPI_STATUS_IGNORE);
		check_same(b, WORDS, left, s, 0);
		munmap(to, WORDS * 8);
	}
	return check_end("remap");
}
