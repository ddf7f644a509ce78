/* The C side of languages.f90: requests and messages by their handles of Fortran. */
#include <mpi.h>

void start_in_c(double *a, double *b, int n, int other, MPI_Fint *handles)
{
	MPI_Request q[2];

	MPI_Irecv(b, n, MPI_DOUBLE, other, 5, MPI_COMM_WORLD, &q[0]);
	MPI_Isend(a, n, MPI_DOUBLE, other, 5, MPI_COMM_WORLD, &q[1]);
	for (int i = 0; i < 2; i++)
		handles[i] = MPI_Request_c2f(q[i]);
}

void end_in_c(MPI_Fint *handles, int n)
{
	MPI_Request q[2];

	for (int i = 0; i < n; i++)
		q[i] = MPI_Request_f2c(handles[i]);
	MPI_Waitall(n, q, MPI_STATUSES_IGNORE);
}

void start_and_end_in_c(MPI_Fint *handle)
{
	MPI_Request q = MPI_Request_f2c(*handle);

	MPI_Start(&q);
	MPI_Wait(&q, MPI_STATUS_IGNORE);
}

void free_in_c(MPI_Fint *handle)
{
	MPI_Request q = MPI_Request_f2c(*handle);

	MPI_Request_free(&q);
}

void receive_in_c(double *b, int n, MPI_Fint *handle)
{
	MPI_Message message = MPI_Message_f2c(*handle);

	MPI_Mrecv(b, n, MPI_DOUBLE, &message, MPI_STATUS_IGNORE);
}
