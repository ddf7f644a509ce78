/* MPI_THREAD_MULTIPLE: several threads of each rank exchange at the same time; threads end and new ones begin. */
#include <pthread.h>

#include "check.h"

#define THREADS 2
static size_t n;
static int steps;

static void *work(void *arg)
{
	int me = (int)(intptr_t)arg, left = (check_rank + check_size - 1) % check_size,
		right = (check_rank + 1) % check_size;
	uint64_t *out = check_alloc(n), *in = check_alloc(n);

	for (int s = 0; s < steps; s++) {
		MPI_Request q[2];

		check_fill(out, n, check_rank, s, me);
		MPI_Irecv(in, (int)n, MPI_UINT64_T, left, me, MPI_COMM_WORLD, &q[0]);
		MPI_Isend(out, (int)n, MPI_UINT64_T, right, me, MPI_COMM_WORLD, &q[1]);
		MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
		check_same(in, n, left, s, me);
	}
	free(out);
	free(in);
	return NULL;
}

int main(int argc, char **argv)
{
	int provided;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
	MPI_Comm_size(MPI_COMM_WORLD, &check_size);
	steps = (int)check_arg(argc, argv, 1, 3);
	n = (size_t)check_arg(argc, argv, 2, 128 << 10) / 8;
	if (provided < MPI_THREAD_MULTIPLE && check_rank == 0)
		printf("threads: this MPI gives no MPI_THREAD_MULTIPLE; one thread only\n");
	for (int round = 0; round < 2; round++) {
		pthread_t t[THREADS];
		int k = provided < MPI_THREAD_MULTIPLE ? 0 : THREADS;

		for (int i = 0; i < k; i++)
			pthread_create(&t[i], NULL, work, (void *)(intptr_t)i);
		for (int i = 0; i < k; i++)
			pthread_join(t[i], NULL);
		if (!k)
			work(NULL);
	}
	return check_end("threads");
}
