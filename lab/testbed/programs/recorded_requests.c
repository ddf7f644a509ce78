/* Requests that end late, or never, and messages from any source. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "recorded.h"

void persistent(void)
{
	MPI_Request q[3], left;

	MPI_Send_init(a, N, MPI_DOUBLE, other, 7, MPI_COMM_WORLD, &left); /* never started; its handle comes again */
	MPI_Request_free(&left);
	MPI_Ssend_init(a, N, MPI_DOUBLE, other, 1, MPI_COMM_WORLD, &q[0]);
	MPI_Send_init(a, 0, MPI_DOUBLE, other, 2, MPI_COMM_WORLD, &q[1]);
	MPI_Recv_init(b, N, MPI_DOUBLE, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &q[2]);
	for (int i = 0; i < 3; i++) {
		MPI_Startall(3, q);
		/* Nobody else takes the message without bytes. */
		MPI_Recv(b, 0, MPI_DOUBLE, other, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Waitall(3, q, MPI_STATUSES_IGNORE);
	}
	for (int i = 0; i < 3; i++)
		MPI_Request_free(&q[i]);
}

void cancelled(void)
{
	MPI_Request q;

	MPI_Irecv(a, N, MPI_DOUBLE, other, 3, MPI_COMM_WORLD, &q);
	MPI_Cancel(&q);
	wait_for(&q);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Sendrecv(a, N, MPI_DOUBLE, other, 3, b, N, MPI_DOUBLE, other, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

void buffered(void)
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

void unblocked(void)
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
void any(void)
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
