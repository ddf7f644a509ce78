/* The other collectives that move much data, blocking and not, on a communicator of their own. */
#include "check.h"

int main(int argc, char **argv)
{
	int steps = (int)check_arg(argc, argv, 1, 3);
	size_t n = (size_t)check_arg(argc, argv, 2, 128 << 10) / 8;

	check_begin(&argc, &argv);
	MPI_Comm comm;
	MPI_Request q;
	size_t all = n * (size_t)check_size;
	uint64_t *a = check_alloc(all), *b = check_alloc(all);

	for (int s = 0; s < steps; s++) {
		int root = s % check_size;

		MPI_Comm_dup(MPI_COMM_WORLD, &comm);
		check_fill(a, n, root == check_rank ? root : 99, s, 0);
		MPI_Bcast(a, (int)n, MPI_UINT64_T, root, comm);
		check_same(a, n, root, s, 0);

		check_fill(a, n, check_rank, s, 1);
		MPI_Allgather(a, (int)n, MPI_UINT64_T, b, (int)n, MPI_UINT64_T, comm);
		for (int r = 0; r < check_size; r++)
			check_same(b + n * (size_t)r, n, r, s, 1);
		MPI_Iallgather(a, (int)n, MPI_UINT64_T, b, (int)n, MPI_UINT64_T, comm, &q);
		MPI_Wait(&q, MPI_STATUS_IGNORE);
		for (int r = 0; r < check_size; r++)
			check_same(b + n * (size_t)r, n, r, s, 1);

		MPI_Gather(a, (int)n, MPI_UINT64_T, b, (int)n, MPI_UINT64_T, root, comm);
		for (int r = 0; r < check_size && check_rank == root; r++)
			check_same(b + n * (size_t)r, n, r, s, 1);
		for (int r = 0; r < check_size && check_rank == root; r++)
			check_fill(b + n * (size_t)r, n, r, s, 2);
		MPI_Scatter(b, (int)n, MPI_UINT64_T, a, (int)n, MPI_UINT64_T, root, comm);
		check_same(a, n, check_rank, s, 2);

		for (size_t i = 0; i < n; i++)
			a[i] = (uint64_t)check_rank + i;
		MPI_Allreduce(a, b, (int)n, MPI_UINT64_T, MPI_SUM, comm);
		for (size_t i = 0; i < n; i++)
			check_errors += b[i] != (uint64_t)check_size * i + (uint64_t)check_size * (uint64_t)(check_size - 1) / 2;
		MPI_Allreduce(MPI_IN_PLACE, a, (int)n, MPI_UINT64_T, MPI_MAX, comm);
		for (size_t i = 0; i < n; i++)
			check_errors += a[i] != (uint64_t)(check_size - 1) + i;
		MPI_Comm_free(&comm);
	}
	return check_end("collectives");
}
