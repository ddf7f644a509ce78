/*
 * Two worlds of processes, started one after the other, with ranks from 0 as those that started them
 * have. Each exchanges among its own, and with who started it. The second argument tells the generations.
 */
#include "check.h"

#define WORDS 4096

static uint64_t a[WORDS], b[WORDS];

static void exchange(MPI_Comm comm, int to, int from, int of, int step)
{
	check_fill(a, WORDS, check_rank, step, 0);
	MPI_Sendrecv(a, WORDS, MPI_UINT64_T, to, 0, b, WORDS, MPI_UINT64_T, from, 0, comm, MPI_STATUS_IGNORE);
	check_same(b, WORDS, of, step, 0);
}

int main(int argc, char **argv)
{
	char *again[] = {"again", NULL};
	MPI_Comm parent, started;

	check_begin(&argc, &argv);
	int left = (check_rank + check_size - 1) % check_size, right = (check_rank + 1) % check_size;

	MPI_Comm_get_parent(&parent);
	exchange(MPI_COMM_WORLD, right, left, left, 0);
	for (int i = 0; i < 2 && parent == MPI_COMM_NULL; i++) {
		MPI_Comm_spawn(argv[0], again, check_size, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &started, MPI_ERRCODES_IGNORE);
		exchange(started, check_rank, check_rank, check_rank, 1);
		MPI_Comm_disconnect(&started);
		exchange(MPI_COMM_WORLD, right, left, left, 2);
	}
	if (parent != MPI_COMM_NULL) {
		exchange(parent, check_rank, check_rank, check_rank, 1);
		MPI_Comm_disconnect(&parent);
	}
	return check_end("spawn");
}
