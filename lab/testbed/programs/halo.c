/* Halo exchange with the neighbours on a ring, as BT and SP do: nonblocking, the same buffers every step. */
#include "check.h"

int main(int argc, char **argv)
{
	long steps = check_arg(argc, argv, 1, 12), bytes = check_arg(argc, argv, 2, 1 << 20);
	double compute_ms = (double)check_arg(argc, argv, 3, 2);
	size_t n = (size_t)bytes / 8;
	uint64_t *out[2], *in[2];

	check_begin(&argc, &argv);
	int left = (check_rank + check_size - 1) % check_size, right = (check_rank + 1) % check_size;
	for (int d = 0; d < 2; d++)
		out[d] = check_alloc(n), in[d] = check_alloc(n);
	for (int s = 0; s < steps; s++) {
		MPI_Request q[4];

		for (int d = 0; d < 2; d++)
			check_fill(out[d], n, check_rank, s, d);
		MPI_Irecv(in[0], (int)n, MPI_UINT64_T, left, 0, MPI_COMM_WORLD, &q[0]);
		MPI_Irecv(in[1], (int)n, MPI_UINT64_T, right, 1, MPI_COMM_WORLD, &q[1]);
		MPI_Isend(out[0], (int)n, MPI_UINT64_T, right, 0, MPI_COMM_WORLD, &q[2]);
		MPI_Isend(out[1], (int)n, MPI_UINT64_T, left, 1, MPI_COMM_WORLD, &q[3]);
		MPI_Waitall(4, q, MPI_STATUSES_IGNORE);
		check_same(in[0], n, left, s, 0);
		check_same(in[1], n, right, s, 1);
		check_compute(compute_ms);
	}
	return check_end("halo");
}
