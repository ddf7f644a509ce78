/*
 * What is hard to record such that it can be replayed, one kind of thing after the
 * other, on two ranks; "recorded KIND" does one alone. A rank that replays what
 * another did not do, or does it in another order, stands still.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "recorded.h"

double a[4 * N], b[4 * N];
int me, other;

static void collectives(void)
{
	int counts[2] = {N, N / 2}, displs[2] = {0, N}, two = 2, no = 0;
	MPI_Comm c;

	MPI_Gather(a, N, MPI_DOUBLE, b, N, MPI_DOUBLE, 1, MPI_COMM_WORLD);
	MPI_Gatherv(a, counts[me], MPI_DOUBLE, b, counts, displs, MPI_DOUBLE, 0, MPI_COMM_WORLD);
	MPI_Scatter(a, N, MPI_DOUBLE, b, N, MPI_DOUBLE, 1, MPI_COMM_WORLD);
	MPI_Scatterv(a, counts, displs, MPI_DOUBLE, b, counts[me], MPI_DOUBLE, 0, MPI_COMM_WORLD);
	MPI_Scan(a, b, N, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	MPI_Exscan(a, b, N, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	MPI_Reduce_scatter(a, b, counts, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	MPI_Reduce_scatter_block(a, b, N, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, b, (int[]){N, N}, displs, MPI_DOUBLE, MPI_COMM_WORLD);
	MPI_Cart_create(MPI_COMM_WORLD, 1, &two, &no, 0, &c);
	MPI_Neighbor_alltoall(a, N, MPI_DOUBLE, b, N, MPI_DOUBLE, c);
	MPI_Neighbor_allgather(a, N, MPI_DOUBLE, b, N, MPI_DOUBLE, c);
	MPI_Comm_free(&c);
}

static void onesided(void)
{
	MPI_Win w;
	MPI_Request q;
	double *window;

	MPI_Win_allocate(sizeof b, sizeof *b, MPI_INFO_NULL, MPI_COMM_WORLD, &window, &w);
	MPI_Win_fence(0, w);
	MPI_Put(a, N, MPI_DOUBLE, other, 0, N, MPI_DOUBLE, w);
	MPI_Accumulate(a, N, MPI_DOUBLE, other, N, N, MPI_DOUBLE, MPI_SUM, w);
	MPI_Win_fence(0, w);
	MPI_Get(a, N, MPI_DOUBLE, other, 0, N, MPI_DOUBLE, w);
	MPI_Win_fence(0, w);
	MPI_Win_lock(MPI_LOCK_SHARED, other, 0, w);
	MPI_Put(a, N, MPI_DOUBLE, other, N * me, N, MPI_DOUBLE, w);
	MPI_Win_flush(other, w);
	MPI_Rput(a, N, MPI_DOUBLE, other, N * me, N, MPI_DOUBLE, w, &q);
	wait_for(&q);
	MPI_Win_unlock(other, w);
	MPI_Win_free(&w);
}

/* Errors that the program handles: a message that is too long has come all the same. */
static void failed(void)
{
	int rc = 0;

	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	if (me)
		rc = MPI_Recv(b, N / 2, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE) == MPI_SUCCESS;
	else
		MPI_Send(a, N, MPI_DOUBLE, 1, 1, MPI_COMM_WORLD);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
	if (rc)
		MPI_Abort(MPI_COMM_WORLD, 1);
}

static void *send_two(void *unused)
{
	(void)unused;
	for (int i = 0; i < 2; i++)
		MPI_Send(a, N, MPI_DOUBLE, other, 1, MPI_COMM_WORLD);
	return NULL;
}

/* Of another thread, which is not recorded. */
static void threads(void)
{
	pthread_t t;

	if (!me)
		pthread_create(&t, NULL, send_two, NULL);
	else
		for (int i = 0; i < 2; i++)
			MPI_Recv(b, N, MPI_DOUBLE, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	if (!me)
		pthread_join(t, NULL);
	MPI_Barrier(MPI_COMM_WORLD);
}

/* Rank 1 is killed by what rank 0 does. */
static void aborted(void)
{
	const struct timespec t = {.tv_nsec = 500000000};

	for (int i = 0; i < 10; i++)
		MPI_Sendrecv(a, N, MPI_DOUBLE, other, 1, b, N, MPI_DOUBLE, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	nanosleep(&t, NULL);
	if (!me)
		MPI_Abort(MPI_COMM_WORLD, 7);
	MPI_Recv(b, N, MPI_DOUBLE, other, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* main returns without MPI_Finalize. */
static void unfinished(void)
{
	MPI_Allreduce(a, b, N, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	if (me)
		exit(0);
}

static const struct {
	const char *name;
	void (*run)(void);
} kinds[] = {
	{"communicators", communicators}, {"persistent", persistent}, {"cancelled", cancelled},
	{"buffered", buffered}, {"unblocked", unblocked}, {"any", any},
	{"collectives", collectives}, {"onesided", onesided}, {"failed", failed}, {"threads", threads},
	{"connected", connected}, {"aborted", aborted}, {"unfinished", unfinished},
};

int main(int argc, char **argv)
{
	const char *kind = argc > 1 ? argv[1] : "all";
	int is_threaded = !strcmp(kind, "threads"), provided;

	MPI_Init_thread(&argc, &argv, is_threaded ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &me);
	other = 1 - me;
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (!strcmp(kind, kinds[i].name) || (!strcmp(kind, "all") && i < 9))
			kinds[i].run();
	if (!strcmp(kind, "unfinished"))
		return 0;
	MPI_Finalize();
	if (!me)
		puts("done");
	return 0;
}
