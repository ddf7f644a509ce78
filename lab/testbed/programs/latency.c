/*
 * What an exchange takes: two ranks send each other a buffer of 17 KB, the least
 * that Pinwheel looks at, over whatever transport there is. Prints, for rank 0, the
 * median over blocks of exchanges, in ns an exchange.
 */
#include "check.h"

#define BLOCK 100 /* exchanges timed together */

int main(int argc, char **argv)
{
	int blocks = (int)check_arg(argc, argv, 1, 2000);
	size_t n = (size_t)check_arg(argc, argv, 2, 17 << 10) / 8;
	double *ns = calloc((size_t)blocks, sizeof *ns);

	check_begin(&argc, &argv);
	int other = check_rank ^ 1;
	uint64_t *out = check_alloc(n), *in = check_alloc(n);

	check_fill(out, n, check_rank, 0, 0);
	for (int b = 0; b < blocks && other < check_size; b++) {
		double start = MPI_Wtime();

		for (int i = 0; i < BLOCK; i++)
			MPI_Sendrecv(out, (int)n, MPI_UINT64_T, other, 0, in, (int)n, MPI_UINT64_T, other, 0, MPI_COMM_WORLD,
				     MPI_STATUS_IGNORE);
		ns[b] = (MPI_Wtime() - start) * 1e9 / BLOCK;
	}
	if (other < check_size)
		check_same(in, n, other, 0, 0);
	qsort(ns, (size_t)blocks, sizeof *ns, check_by_value);
	if (check_rank == 0)
		printf("latency: %.0f ns\n", ns[blocks / 2]);
	return check_end("latency");
}
