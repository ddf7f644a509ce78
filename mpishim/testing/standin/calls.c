/*
 * What calls cost that register nothing, in nanoseconds: MPI_Send of 8 B and of 17 KB, which the
 * stand-in copies, MPI_Test and MPI_Iprobe. Run it without the preload library, and with it.
 *
 *   calls [ROUNDS]    prints the medians in this order
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "standin.h"
#include "timing.h"

#define CALLS 256 /* timed together */

static char buf[32 << 10];
static void *request;
static int flag;

static int send_8(void) { return MPI_Send(buf, 8, &ompi_mpi_byte, 0, 0, &ompi_mpi_comm_world); }
static int send_17k(void) { return MPI_Send(buf, 17 << 10, &ompi_mpi_byte, 0, 0, &ompi_mpi_comm_world); }
static int test(void) { return MPI_Test(&request, &flag, NULL); }
static int iprobe(void) { return MPI_Iprobe(0, 0, &ompi_mpi_comm_world, &flag, NULL); }

int main(int argc, char **argv)
{
	static int (*const calls[])(void) = {send_8, send_17k, test, iprobe};
	enum { KINDS = sizeof calls / sizeof *calls };
	int rounds = argc > 1 ? atoi(argv[1]) : 4000, failed = MPI_Init(&argc, &argv);
	double *ns[KINDS];

	standin_copies = sizeof buf;
	for (int k = 0; k < KINDS; k++)
		ns[k] = calloc((size_t)rounds, sizeof *ns[k]);
	for (int r = 0; r < rounds; r++)
		for (int k = 0; k < KINDS; k++) {
			uint64_t start = now();

			for (int i = 0; i < CALLS; i++)
				failed += calls[k]();
			ns[k][r] = (double)(now() - start) / CALLS;
		}
	failed += MPI_Finalize();
	for (int k = 0; k < KINDS; k++) {
		qsort(ns[k], (size_t)rounds, sizeof *ns[k], by_value);
		printf("%.2f ", ns[k][rounds / 2]);
	}
	printf("\n");
	return failed != 0;
}
