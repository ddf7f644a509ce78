/*
 * Many threads one after another, each of which communicates and ends: from memory of its own, which is freed, from its
 * stack, which the next one gets, and from memory that all of them have.
 */
#include <pthread.h>

#include "check.h"

#define STACK_WORDS (32 << 10)
static size_t n;
static uint64_t *common_out, *common_in;

static void *turn(void *arg)
{
	int me = (int)(intptr_t)arg;
	uint64_t *out = check_alloc(n), *in = check_alloc(n), stack[STACK_WORDS];

	check_exchange(out, in, n, me, 0);
	check_exchange(stack, in, n < STACK_WORDS ? n : STACK_WORDS, me, 1);
	check_exchange(common_out, common_in, n, me, 2);
	free(out);
	free(in);
	return NULL;
}

int main(int argc, char **argv)
{
	int provided, turns = (int)check_arg(argc, argv, 1, 200);

	MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
	MPI_Comm_size(MPI_COMM_WORLD, &check_size);
	n = (size_t)check_arg(argc, argv, 2, 256 << 10) / 8;
	common_out = check_alloc(n);
	common_in = check_alloc(n);
	for (int i = 0; i < turns; i++) {
		pthread_t t;

		if (pthread_create(&t, NULL, turn, (void *)(intptr_t)i))
			MPI_Abort(MPI_COMM_WORLD, 3);
		pthread_join(t, NULL);
	}
	return check_end("turns");
}
