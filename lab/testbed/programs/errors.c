/*
 * Errors that a program handles: their classes, and how often which handler is called, are
 * what this prints; they must be those without anything preloaded. Every rank for itself, the first one prints.
 */
#include "check.h"

static int own, worlds; /* calls of the handlers */
static int own_class;
static void of_own(MPI_Comm *comm, int *code, ...)
{
	(void)comm;
	own++;
	MPI_Error_class(*code, &own_class);
}
static void of_world(MPI_Comm *comm, int *code, ...) { (void)comm, (void)code, worlds++; }

static void say(const char *what, int rc)
{
	int class;

	MPI_Error_class(rc, &class);
	if (check_rank == 0)
		printf("%s: class %d, handled %d and %d times, class %d\n", what, class, own, worlds, own_class);
	own = worlds = own_class = 0;
}
#define TRY(call) say(#call, call)

int main(int argc, char **argv)
{
	static double b[8192], a[8192];
	int two[2], counts[64], zeros[64] = {0}, out, flag;
	MPI_Comm c, none = MPI_COMM_NULL, gone;
	MPI_Datatype column, no_type = MPI_DATATYPE_NULL;
	MPI_Request q = MPI_REQUEST_NULL, some[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
	MPI_Errhandler h;

	check_begin(&argc, &argv);
	int me = check_rank;
	MPI_Comm_dup(MPI_COMM_SELF, &c);
	MPI_Comm_create_errhandler(of_own, &h);
	MPI_Comm_set_errhandler(c, h);
	MPI_Errhandler_free(&h);
	MPI_Comm_create_errhandler(of_world, &h);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, h);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, h);
	MPI_Errhandler_free(&h);
	for (int i = 0; i < 64; i++)
		counts[i] = 8192;

	/* What is wrong is found before anything else is looked at. */
	TRY(MPI_Send(b, 8192, MPI_DATATYPE_NULL, 0, 0, c));
	TRY(MPI_Send(b, 8192, MPI_DOUBLE, 1000, 0, c));
	TRY(MPI_Send(b, -1, MPI_DOUBLE, 0, 0, c));
	TRY(MPI_Recv(b, -1, MPI_DOUBLE, 0, 0, c, MPI_STATUS_IGNORE));
	TRY(MPI_Isend(b, 8192, MPI_DATATYPE_NULL, 0, 0, c, &q));
	TRY(MPI_Isend(b, 8192, MPI_DOUBLE, 0, 0, c, NULL));
	TRY(MPI_Irecv(b, 8192, MPI_DOUBLE, 1000, 0, c, &q));
	TRY(MPI_Send_init(b, 8192, MPI_DATATYPE_NULL, 0, 0, c, &q));
	TRY(MPI_Send_init(b, 8192, MPI_DOUBLE, 0, 0, c, NULL));
	TRY(MPI_Sendrecv(b, 8192, MPI_DATATYPE_NULL, 0, 0, a, 8192, MPI_DATATYPE_NULL, 0, 0, c, MPI_STATUS_IGNORE));
	TRY(MPI_Bcast(b, 8192, MPI_DOUBLE, 0, MPI_COMM_NULL));
	TRY(MPI_Bcast(b, 8192, MPI_DATATYPE_NULL, 0, c));
	TRY(MPI_Bcast(b, 8192, MPI_DOUBLE, 1000, c));
	TRY(MPI_Gather(b, 8192, MPI_DATATYPE_NULL, a, 8192, MPI_DOUBLE, 0, c));
	TRY(MPI_Gather(b, 8192, MPI_DOUBLE, a, 8192, MPI_DATATYPE_NULL, 0, c));
	TRY(MPI_Gather(b, 8192, MPI_DOUBLE, a, 8192, MPI_DOUBLE, 0, MPI_COMM_NULL));
	TRY(MPI_Alltoall(b, 8192, MPI_DATATYPE_NULL, a, 8192, MPI_DATATYPE_NULL, c));
	TRY(MPI_Alltoallv(b, counts, zeros, MPI_DATATYPE_NULL, a, counts, zeros, MPI_DATATYPE_NULL, c));
	TRY(MPI_Alltoallv(b, counts, zeros, MPI_DOUBLE, a, counts, zeros, MPI_DOUBLE, MPI_COMM_NULL));
	TRY(MPI_Allreduce(b, a, 8192, MPI_DATATYPE_NULL, MPI_SUM, c));
	TRY(MPI_Allreduce(b, a, 8192, MPI_DOUBLE, MPI_OP_NULL, c));
	TRY(MPI_Neighbor_alltoall(b, 8192, MPI_DOUBLE, a, 8192, MPI_DOUBLE, c));

	/* Results that are not there. */
	memset(&out, 0x55, sizeof out);
	TRY(MPI_Waitsome(-1, &q, &out, two, MPI_STATUSES_IGNORE));
	TRY(MPI_Testsome(-1, &q, &out, two, MPI_STATUSES_IGNORE));
	TRY(MPI_Waitsome(2, NULL, &out, two, MPI_STATUSES_IGNORE));
	TRY(MPI_Wait(NULL, MPI_STATUS_IGNORE));
	TRY(MPI_Waitall(2, NULL, MPI_STATUSES_IGNORE));
	TRY(MPI_Waitall(-1, some, MPI_STATUSES_IGNORE));
	TRY(MPI_Testany(-1, some, &out, &flag, MPI_STATUS_IGNORE));
	TRY(MPI_Testall(2, NULL, &flag, MPI_STATUSES_IGNORE));
	TRY(MPI_Start(NULL));
	TRY(MPI_Start(&q));
	TRY(MPI_Startall(-1, some));
	TRY(MPI_Startall(2, NULL));
	TRY(MPI_Request_free(NULL));
	TRY(MPI_Request_free(&q));

	/* Handles that are none. */
	TRY(MPI_Type_commit(&no_type));
	TRY(MPI_Type_free(&no_type));
	TRY(MPI_Type_dup(MPI_DATATYPE_NULL, &no_type));
	TRY(MPI_Comm_free(&none));
	TRY(MPI_Comm_disconnect(&none));
	TRY(MPI_Comm_dup(MPI_COMM_NULL, &none));
	TRY(MPI_Comm_dup(c, NULL));
	TRY(MPI_Comm_split(c, -5, 0, &none));
	TRY(MPI_Cart_create(MPI_COMM_NULL, 1, counts, counts, 0, &none));

	/* Not committed yet, then good. */
	MPI_Type_vector(4096, 1, 2, MPI_DOUBLE, &column);
	TRY(MPI_Sendrecv(b, 1, column, 0, 0, a, 1, column, 0, 0, c, MPI_STATUS_IGNORE));
	MPI_Type_commit(&column);
	TRY(MPI_Sendrecv(b, 1, column, 0, 0, a, 1, column, 0, 0, c, MPI_STATUS_IGNORE));
	MPI_Type_free(&column);

	/* Errors of the communication itself. */
	TRY(MPI_Sendrecv(b, 8192, MPI_DOUBLE, 0, 0, a, 100, MPI_DOUBLE, 0, 0, c, MPI_STATUS_IGNORE));
	MPI_Irecv(a, 100, MPI_DOUBLE, 0, 1, c, &some[0]);
	MPI_Isend(b, 8192, MPI_DOUBLE, 0, 1, c, &some[1]);
	TRY(MPI_Waitall(2, some, MPI_STATUSES_IGNORE));
	own = own_class = 0;

#ifndef OPEN_MPI /* which crashes by itself: its handles are pointers */
	MPI_Comm_dup(c, &gone);
	none = gone;
	MPI_Comm_free(&gone);
	TRY(MPI_Bcast(b, 8192, MPI_DOUBLE, 0, none));
	TRY(MPI_Alltoall(b, 1, MPI_DOUBLE, a, 1, MPI_DOUBLE, (MPI_Comm)0xc45a5a5a));
#else /* MPICH reads these first */
	(void)gone;
	TRY(MPI_Type_commit(NULL));
	TRY(MPI_Type_free(NULL));
	TRY(MPI_Alltoallv(b, NULL, NULL, MPI_DOUBLE, a, NULL, NULL, MPI_DOUBLE, c));
	TRY(MPI_Alltoallw(b, NULL, NULL, NULL, a, NULL, NULL, NULL, c));
	TRY(MPI_Ialltoallv(b, NULL, NULL, MPI_DOUBLE, a, NULL, NULL, MPI_DOUBLE, c, &q));
	TRY(MPI_Reduce_scatter(b, a, NULL, MPI_DOUBLE, MPI_SUM, c));
#endif

	/* After all that, it works. */
	TRY(MPI_Sendrecv(b, 8192, MPI_DOUBLE, 0, 0, a, 8192, MPI_DOUBLE, 0, 0, c, MPI_STATUS_IGNORE));
	TRY(MPI_Sendrecv_replace(b, 8192, MPI_DOUBLE, (me + 1) % check_size, 0, (me + check_size - 1) % check_size, 0,
				 MPI_COMM_WORLD, MPI_STATUS_IGNORE));
	MPI_Comm_free(&c);
	fflush(stdout);
	MPI_Finalize();
	return 0;
}
