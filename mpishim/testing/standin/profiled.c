/*
 * A tool that is part of the program, as mpiP and Score-P are where they are linked: it has MPI_x and calls PMPI_x, so
 * the preload library sees those alone. It sends as often as the argument says.
 */
#include <stdlib.h>

int PMPI_Init(int *argc, char ***argv);
int PMPI_Send(const void *buf, int count, void *type, int to, int tag, void *comm);
int PMPI_Barrier(void *comm);
int PMPI_Finalize(void);
extern char ompi_mpi_comm_world, ompi_mpi_byte;

static long calls;

int MPI_Init(int *argc, char ***argv) { return PMPI_Init(argc, argv); }
int MPI_Finalize(void) { return PMPI_Finalize(); }
int MPI_Send(const void *buf, int count, void *type, int to, int tag, void *comm)
{
	calls++;
	return PMPI_Send(buf, count, type, to, tag, comm);
}

int main(int argc, char **argv)
{
	const int bytes = 64 << 10;
	char *buf = malloc((size_t)bytes);
	long n = argc > 1 ? atol(argv[1]) : 1;
	int failed = MPI_Init(&argc, &argv);

	for (long i = 0; i < n; i++)
		failed += MPI_Send(buf, bytes, &ompi_mpi_byte, 0, 0, &ompi_mpi_comm_world);
	failed += PMPI_Barrier(&ompi_mpi_comm_world); /* MPI_Send of the tool is called from inside */
	return failed || MPI_Finalize() || calls < n;
}
