/* What MPI-4 plans once and starts often: persistent collectives, and messages in partitions. Large counts as well. */
#include "check.h"
#include "mpix.h"

#define PARTITIONS 8

int main(int argc, char **argv)
{
	int steps = (int)check_arg(argc, argv, 1, 3);
	size_t n = (size_t)check_arg(argc, argv, 2, 256 << 10) / 8;

	check_begin(&argc, &argv);
	size_t all = n * (size_t)check_size;
	int next = (check_rank + 1) % check_size, previous = (check_rank + check_size - 1) % check_size;
	uint64_t *a = check_alloc(n), *b = check_alloc(all), *c = check_alloc(all), *d = check_alloc(n);
	uint64_t *e = check_alloc(n);
	MPI_Request plans[3];

	MPI_Allgather_init(a, (int)n, MPI_UINT64_T, b, (int)n, MPI_UINT64_T, MPI_COMM_WORLD, MPI_INFO_NULL, &plans[0]);
	MPI_Alltoall_init(b, (int)n, MPI_UINT64_T, c, (int)n, MPI_UINT64_T, MPI_COMM_WORLD, MPI_INFO_NULL, &plans[1]);
	MPI_Allreduce_init(MPI_IN_PLACE, d, (int)n, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &plans[2]);
#if MPI_VERSION >= 4
	MPI_Request parts[2];
	MPI_Status statuses[2];
	MPI_Count part = (MPI_Count)n / PARTITIONS;

	MPI_Psend_init(a, PARTITIONS, part, MPI_UINT64_T, next, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &parts[0]);
	MPI_Precv_init(e, PARTITIONS, part, MPI_UINT64_T, previous, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &parts[1]);
#else
	(void)next, (void)previous, (void)e;
#endif
	for (int s = 0; s < steps; s++) {
		check_fill(a, n, check_rank, s, 0);
		MPI_Start(&plans[0]);
		MPI_Wait(&plans[0], MPI_STATUS_IGNORE);
		for (int r = 0; r < check_size; r++)
			check_same(b + n * (size_t)r, n, r, s, 0);

		for (int r = 0; r < check_size; r++)
			check_fill(b + n * (size_t)r, n, check_rank, s, 1 + r);
		MPI_Startall(1, &plans[1]);
		MPI_Wait(&plans[1], MPI_STATUS_IGNORE);
		for (int r = 0; r < check_size; r++)
			check_same(c + n * (size_t)r, n, r, s, 1 + check_rank);

		for (size_t i = 0; i < n; i++)
			d[i] = (uint64_t)check_rank + i;
		MPI_Start(&plans[2]);
		MPI_Wait(&plans[2], MPI_STATUS_IGNORE);
		for (size_t i = 0; i < n; i++)
			check_errors += d[i] != (uint64_t)check_size * i + (uint64_t)check_size * (uint64_t)(check_size - 1) / 2;
#if MPI_VERSION >= 4
		MPI_Startall(2, parts);
		MPI_Pready_range(0, PARTITIONS - 2, parts[0]);
		MPI_Pready(PARTITIONS - 1, parts[0]);
		MPI_Waitall(2, parts, statuses);
		check_same(e, n, previous, s, 0);

		MPI_Sendrecv_c(a, (MPI_Count)n, MPI_UINT64_T, next, 4, e, (MPI_Count)n, MPI_UINT64_T, previous, 4,
			       MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		check_same(e, n, previous, s, 0);
#endif
	}
	for (int i = 0; i < 3; i++)
		MPI_Request_free(&plans[i]);
#if MPI_VERSION >= 4
	for (int i = 0; i < 2; i++)
		MPI_Request_free(&parts[i]);
#endif
	return check_end("planned");
}
