/*
 * Figure 1 of Li et al. (CF 2011): rank 0 sends three buffers to rank 1 by turns, and both compute after each:
 *
 *	overlap reused|fresh BYTES ROUNDS MS
 *
 * Of fresh buffers, none is used in two rounds. Computing is sleeping for MS milliseconds. Prints what a
 * message takes the sender, in ns: the median. Both ranks begin with each at the same time.
 */
#include "../../../testbed/programs/check.h"

#define BUFFERS 3

int main(int argc, char **argv)
{
	size_t n = (size_t)check_arg(argc, argv, 2, 1 << 20) / sizeof(uint64_t);
	int fresh = argc > 1 && !strcmp(argv[1], "fresh"), messages = (int)check_arg(argc, argv, 3, 10) * BUFFERS;
	double ms = (double)check_arg(argc, argv, 4, 50), *ns = calloc((size_t)messages, sizeof *ns);
	uint64_t *b[BUFFERS];

	check_begin(&argc, &argv);
	for (int i = 0; i < messages; i++) {
		int at = i % BUFFERS;

		if (i < BUFFERS || fresh) /* what was there stays: its addresses must not come back */
			b[at] = check_map(n);
		if (check_rank == 0)
			check_fill(b[at], n, 0, i, 0);
		else
			memset(b[at], 0, n * sizeof(uint64_t));
		MPI_Barrier(MPI_COMM_WORLD);
		double start = MPI_Wtime();

		if (check_rank == 0)
			MPI_Send(b[at], (int)n, MPI_UINT64_T, 1, 0, MPI_COMM_WORLD);
		else if (check_rank == 1)
			MPI_Recv(b[at], (int)n, MPI_UINT64_T, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		ns[i] = (MPI_Wtime() - start) * 1e9;
		if (check_rank == 1)
			check_same(b[at], n, 0, i, 0);
		check_compute(ms);
	}
	qsort(ns, (size_t)messages, sizeof *ns, check_by_value);
	if (check_rank == 0)
		printf("overlap: %.0f ns\n", ns[messages / 2]);
	return check_end("overlap");
}
