/* Exchanges large messages and then ends without MPI_Finalize: by exit, or with "abort" by MPI_Abort. */
#include "check.h"

int main(int argc, char **argv)
{
	size_t n = 1 << 17;
	uint64_t *out, *in;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
	MPI_Comm_size(MPI_COMM_WORLD, &check_size);
	out = check_alloc(n);
	in = check_alloc(n);
	for (int s = 0; s < 10; s++) {
		check_fill(out, n, check_rank, s, 0);
		MPI_Sendrecv(out, (int)n, MPI_UINT64_T, (check_rank + 1) % check_size, 0, in, (int)n, MPI_UINT64_T,
			     (check_rank + check_size - 1) % check_size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	printf("unfinished: rank %d ends\n", check_rank);
	fflush(stdout);
	if (argc > 1 && !strcmp(argv[1], "abort"))
		MPI_Abort(MPI_COMM_WORLD, 3);
	exit(0);
}
