/*
 * What is hard to record such that it can be replayed, one kind of thing after the
 * other, on two ranks; "recorded KIND" does one alone. A rank that replays what
 * another did not do, or does it in another order, stands still.
 */
#include <fcntl.h>
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define N 8192 /* doubles: above every threshold */
static double a[4 * N], b[4 * N];
static int me, other;

static void wait_for(MPI_Request *q) { MPI_Wait(q, MPI_STATUS_IGNORE); }

/* Each rank comes to the two in another order: crossed, a barrier meets an allreduce. */
static void use_both(MPI_Comm x, MPI_Comm y)
{
	MPI_Request q[2];

	for (int i = 0; i < 2; i++)
		if (i == me)
			MPI_Ibarrier(x, &q[i]);
		else
			MPI_Iallreduce(a, b, N, MPI_DOUBLE, MPI_SUM, y, &q[i]);
	MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
	MPI_Comm_free(&x);
	MPI_Comm_free(&y);
}

static MPI_Comm by_group(MPI_Comm parent, int tag)
{
	MPI_Group g;
	MPI_Comm c;

	MPI_Comm_group(parent, &g);
	MPI_Comm_create_group(parent, g, tag, &c);
	MPI_Group_free(&g);
	return c;
}

static MPI_Comm between(int tag)
{
	MPI_Comm c;

	MPI_Intercomm_create(MPI_COMM_SELF, 0, MPI_COMM_WORLD, other, tag, &c);
	return c;
}

/* Between two that need not be of one world. */
static void connected(void)
{
	char port[MPI_MAX_PORT_NAME];
	MPI_Comm c;

	if (!me)
		MPI_Open_port(MPI_INFO_NULL, port);
	MPI_Bcast(port, sizeof port, MPI_CHAR, 0, MPI_COMM_WORLD);
	if (me)
		MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &c);
	else
		MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &c);
	MPI_Barrier(c);
	MPI_Sendrecv(a, N, MPI_DOUBLE, 0, 0, b, N, MPI_DOUBLE, 0, 0, c, MPI_STATUS_IGNORE);
	MPI_Comm_disconnect(&c);
	if (!me)
		MPI_Close_port(port);
}

static void communicators(void)
{
	MPI_Comm x, y, u, v;
	MPI_Request q[2];
	MPI_Group g;
	const int two = 2, no = 0;

	for (int i = 0; i < 3; i++) { /* the handles come again */
		MPI_Comm_dup(MPI_COMM_WORLD, &x);
		MPI_Comm_dup(i ? x : MPI_COMM_WORLD, &y);
		use_both(x, y);
	}
	MPI_Comm_split(MPI_COMM_WORLD, 0, me, &x);
	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, me, MPI_INFO_NULL, &y);
	use_both(x, y);
	MPI_Comm_split(MPI_COMM_WORLD, 0, -me, &x); /* in another order of ranks */
	MPI_Comm_group(MPI_COMM_WORLD, &g);
	MPI_Comm_create(MPI_COMM_WORLD, g, &y);
	MPI_Group_free(&g);
	use_both(x, y);
	x = by_group(MPI_COMM_WORLD, 3);
	y = by_group(MPI_COMM_WORLD, 4);
	use_both(x, y);
	MPI_Cart_create(MPI_COMM_WORLD, 1, &two, &no, 0, &x);
	MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &other, MPI_UNWEIGHTED, 1, &other, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &y);
	use_both(x, y);
	u = between(5);
	v = between(6);
	MPI_Intercomm_merge(u, me, &x);
	MPI_Intercomm_merge(v, !me, &y);
	use_both(x, y);
	MPI_Sendrecv(a, N, MPI_DOUBLE, 0, 0, b, N, MPI_DOUBLE, MPI_ANY_SOURCE, 0, u, MPI_STATUS_IGNORE); /* of the other group */
	MPI_Alltoall(a, N, MPI_DOUBLE, b, N, MPI_DOUBLE, u);
	MPI_Bcast(a, N, MPI_DOUBLE, me ? 0 : MPI_ROOT, u);
	use_both(u, v);
	MPI_Comm_idup(MPI_COMM_WORLD, &x, &q[0]);
	MPI_Comm_dup(MPI_COMM_WORLD, &u);
	MPI_Comm_idup(MPI_COMM_WORLD, &y, &q[1]);
	MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
	use_both(x, y);
	MPI_Comm_disconnect(&u);
	MPI_Comm_split(MPI_COMM_WORLD, me, 0, &x); /* the handle again, of others */
	MPI_Allreduce(a, b, N, MPI_DOUBLE, MPI_SUM, x);
	MPI_Comm_free(&x);
}

static void persistent(void)
{
	MPI_Request q[3], left;

	MPI_Send_init(a, N, MPI_DOUBLE, other, 7, MPI_COMM_WORLD, &left); /* never started; its handle comes again */
	MPI_Request_free(&left);
	MPI_Ssend_init(a, N, MPI_DOUBLE, other, 1, MPI_COMM_WORLD, &q[0]);
	MPI_Send_init(a, 0, MPI_DOUBLE, other, 2, MPI_COMM_WORLD, &q[1]);
	MPI_Recv_init(b, N, MPI_DOUBLE, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &q[2]);
	for (int i = 0; i < 3; i++) {
		MPI_Startall(3, q);
		MPI_Recv(b, 0, MPI_DOUBLE, other, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* nobody else takes the message without bytes */
		MPI_Waitall(3, q, MPI_STATUSES_IGNORE);
	}
	for (int i = 0; i < 3; i++)
		MPI_Request_free(&q[i]);
}

static void cancelled(void)
{
	MPI_Request q;

	MPI_Irecv(a, N, MPI_DOUBLE, other, 3, MPI_COMM_WORLD, &q);
	MPI_Cancel(&q);
	wait_for(&q);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Sendrecv(a, N, MPI_DOUBLE, other, 3, b, N, MPI_DOUBLE, other, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void buffered(void)
{
	int bytes;
	void *room = malloc(3 * N * sizeof *a + 3 * MPI_BSEND_OVERHEAD);
	MPI_Request q;

	MPI_Buffer_attach(room, (int)(3 * N * sizeof *a + 3 * MPI_BSEND_OVERHEAD));
	MPI_Bsend(a, N, MPI_DOUBLE, other, 0, MPI_COMM_WORLD);
	MPI_Ibsend(a, N, MPI_DOUBLE, other, 0, MPI_COMM_WORLD, &q);
	wait_for(&q);
	for (int i = 0; i < 2; i++)
		MPI_Recv(b, N, MPI_DOUBLE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Issend(a, N, MPI_DOUBLE, other, 0, MPI_COMM_WORLD, &q);
	MPI_Recv(b, N, MPI_DOUBLE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	wait_for(&q);
	MPI_Buffer_detach(&room, &bytes);
	free(room);
}

static void unblocked(void)
{
	MPI_Request q[8];
	int done = 0, which[8], n;

	MPI_Ibarrier(MPI_COMM_WORLD, &q[0]);
	if (!me) { /* rank 1 is still before its barrier */
		MPI_Send(a, N, MPI_DOUBLE, 1, 9, MPI_COMM_WORLD);
		wait_for(&q[0]);
	} else {
		MPI_Recv(b, N, MPI_DOUBLE, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		wait_for(&q[0]);
	}
	if (me)
		MPI_Recv(b, N, MPI_DOUBLE, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Ibcast(a, N, MPI_DOUBLE, 0, MPI_COMM_WORLD, &q[0]);
	if (!me)
		MPI_Send(a, N, MPI_DOUBLE, 1, 9, MPI_COMM_WORLD);
	wait_for(&q[0]);
#if MPI_VERSION >= 4
	MPI_Isendrecv(a, N, MPI_DOUBLE, other, 1, b, N, MPI_DOUBLE, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &q[0]);
	wait_for(&q[0]);
#endif
	/* MPICH gives sends that have ended at once one handle. */
	for (int i = 0; i < 8; i++)
		MPI_Isend(a, 16, MPI_DOUBLE, other, i, MPI_COMM_WORLD, &q[i]);
	for (int i = 8; i-- > 0;)
		MPI_Recv(b, N, MPI_DOUBLE, other, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	while (done < 8) {
		MPI_Testsome(8, q, &n, which, MPI_STATUSES_IGNORE);
		done += n > 0 ? n : 0;
	}
	MPI_Isend(a, N, MPI_DOUBLE, other, 1, MPI_COMM_WORLD, &q[0]);
	MPI_Request_free(&q[0]); /* it ends by itself */
	MPI_Recv(b, N, MPI_DOUBLE, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Makes a file, or waits for it: what the replay does not see. */
static void meet(int make, const char *name)
{
	const struct timespec t = {.tv_nsec = 1000000};

	if (make)
		close(open(name, O_CREAT | O_WRONLY, 0600));
	for (int i = 0; i < 30000 && access(name, F_OK); i++)
		nanosleep(&t, NULL);
}

/* What the virtual time of the replay would take for later than the other rank's first message. */
static void compute(void)
{
	struct timespec t;
	clock_t end = clock() + CLOCKS_PER_SEC / 20;

	do
		clock_gettime(CLOCK_MONOTONIC, &t);
	while (clock() < end);
}

static void take(int how)
{
	MPI_Request q[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
	MPI_Message m;
	int i, flag = 0;

	switch (how) {
	case 0:
		MPI_Recv(b, N, MPI_DOUBLE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		break;
	case 1:
		MPI_Irecv(b, N, MPI_DOUBLE, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &q[1]);
		MPI_Waitany(2, q, &i, MPI_STATUS_IGNORE);
		break;
	case 2:
		MPI_Irecv(b, N, MPI_DOUBLE, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &q[0]);
		while (!flag)
			MPI_Testall(2, q, &flag, MPI_STATUSES_IGNORE);
		break;
	case 3:
		MPI_Mprobe(MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &m, MPI_STATUS_IGNORE);
		MPI_Mrecv(b, N, MPI_DOUBLE, &m, MPI_STATUS_IGNORE);
		break;
	default:
		while (!flag)
			MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &m, MPI_STATUS_IGNORE);
		MPI_Imrecv(b, N, MPI_DOUBLE, &m, &q[0]);
		wait_for(&q[0]);
	}
}

/* From any source: rank 0 gets its own message first, since the other has not been sent. */
static void any(void)
{
	char name[64];
	MPI_Request q;

	for (int how = 0; how < 5; how++) {
		snprintf(name, sizeof name, "recorded.any.%d", how);
		if (me) {
			meet(0, name);
			MPI_Send(a, N / 2, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD);
		} else {
			compute();
			MPI_Isend(a, N, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD, &q);
			take(how);
			meet(1, name);
			MPI_Recv(b, N, MPI_DOUBLE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			wait_for(&q);
		}
		MPI_Barrier(MPI_COMM_WORLD);
	}
}

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
	{"communicators", communicators}, {"persistent", persistent}, {"cancelled", cancelled}, {"buffered", buffered}, {"unblocked", unblocked},
	{"any", any}, {"collectives", collectives}, {"onesided", onesided}, {"failed", failed}, {"threads", threads},
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
