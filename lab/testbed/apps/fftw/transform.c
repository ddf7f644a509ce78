/*
 * A transform of 128^3 complex numbers by FFTW's MPI interface, there and back, with a shift of phase between, some
 * times. It prints sums of what came of it: the same for the same number of ranks, whoever carries the data.
 *
 * transform [times]
 */
#include <complex.h>
#include <fftw3-mpi.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define N 128

int main(int argc, char **argv)
{
	int times = argc > 1 ? atoi(argv[1]) : 20, rank;
	ptrdiff_t own, first, n;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	fftw_mpi_init();
	n = fftw_mpi_local_size_3d(N, N, N, MPI_COMM_WORLD, &own, &first);
	fftw_complex *a = fftw_alloc_complex(n), *b = fftw_alloc_complex(n);
	/* Planned by rule, not by measurement: the same plan every time. */
	fftw_plan there = fftw_mpi_plan_dft_3d(N, N, N, a, b, MPI_COMM_WORLD, FFTW_FORWARD, FFTW_ESTIMATE);
	fftw_plan back = fftw_mpi_plan_dft_3d(N, N, N, b, a, MPI_COMM_WORLD, FFTW_BACKWARD, FFTW_ESTIMATE);

	for (ptrdiff_t i = 0; i < own * N * N; i++)
		a[i] = sin(.001 * (first * N * N + i)) + I * cos(.003 * (first * N * N + i));
	for (int t = 0; t < times; t++) {
		double mine[2] = {0, 0}, sums[2];

		fftw_execute(there);
		for (ptrdiff_t i = 0; i < own * N * N; i++) {
			mine[0] += cabs(b[i]);
			b[i] *= cexp(I * (first * N * N + i)) / (N * N * N);
		}
		fftw_execute(back);
		for (ptrdiff_t i = 0; i < own * N * N; i++)
			mine[1] += creal(a[i]) * cimag(a[i]);
		MPI_Reduce(mine, sums, 2, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
		if (rank == 0)
			printf("transform %d: %.17g %.17g\n", t, sums[0], sums[1]);
	}
	fftw_destroy_plan(there);
	fftw_destroy_plan(back);
	fftw_mpi_cleanup();
	MPI_Finalize();
	return 0;
}
