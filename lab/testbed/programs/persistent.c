/* Persistent requests, started over and over, and some freed and made anew; both ways of starting and of waiting. */
#include "check.h"

int main(int argc, char **argv)
{
	int steps = (int)check_arg(argc, argv, 1, 8);
	size_t n = (size_t)check_arg(argc, argv, 2, 256 << 10) / 8;

	check_begin(&argc, &argv);
	int left = (check_rank + check_size - 1) % check_size, right = (check_rank + 1) % check_size;
	uint64_t *out = check_alloc(n), *in = check_alloc(n);
	MPI_Request q[2];

	for (int s = 0; s < steps; s++) {
		if (s % 4 == 0) {
			if (s)
				MPI_Request_free(&q[0]), MPI_Request_free(&q[1]);
			MPI_Recv_init(in, (int)n, MPI_UINT64_T, left, 5, MPI_COMM_WORLD, &q[0]);
			MPI_Send_init(out, (int)n, MPI_UINT64_T, right, 5, MPI_COMM_WORLD, &q[1]);
		}
		check_fill(out, n, check_rank, s, 0);
		if (s & 1) {
			MPI_Startall(2, q);
			MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
		} else {
			int done = 0, which;

			MPI_Start(&q[0]);
			MPI_Start(&q[1]);
			MPI_Waitany(2, q, &which, MPI_STATUS_IGNORE);
			while (!done)
				MPI_Test(&q[1 - which], &done, MPI_STATUS_IGNORE);
		}
		check_same(in, n, left, s, 0);
	}
	MPI_Request_free(&q[0]);
	MPI_Request_free(&q[1]);
	return check_end("persistent");
}
