/*
 * What is pinned while a program computes, and what its exchanges take: pairs of
 * ranks exchange large buffers, compute, and read VmPin halfway through. Prints
 * for rank 0, over the second half of the steps: the median exchange in ms, the mean
 * and the largest VmPin in kB.
 */
#include "check.h"

static long vm_pin_kb(void)
{
	char line[256];
	long kb = 0;
	FILE *f = fopen("/proc/self/status", "r");

	while (f && fgets(line, sizeof line, f))
		if (sscanf(line, "VmPin: %ld", &kb) == 1)
			break;
	if (f)
		fclose(f);
	return kb;
}

int main(int argc, char **argv)
{
	int steps = (int)check_arg(argc, argv, 1, 60);
	size_t n = (size_t)check_arg(argc, argv, 2, 4 << 20) / 8;
	double compute_ms = (double)check_arg(argc, argv, 3, 200);
	double *ms, sum = 0, most = 0;

	check_begin(&argc, &argv);
	int other = check_rank ^ 1, half = steps / 2;
	uint64_t *out = check_alloc(n), *in = check_alloc(n);

	ms = calloc((size_t)steps, sizeof *ms);
	check_fill(out, n, check_rank, 0, 0);
	for (int s = 0; s < steps && other < check_size; s++) {
		out[0] = check_word(check_rank, s, 0, 0);
		MPI_Barrier(MPI_COMM_WORLD);
		double start = MPI_Wtime();
		MPI_Sendrecv(out, (int)n, MPI_UINT64_T, other, 0, in, (int)n, MPI_UINT64_T, other, 0, MPI_COMM_WORLD,
			     MPI_STATUS_IGNORE);
		ms[s] = (MPI_Wtime() - start) * 1e3;
		if (in[0] != check_word(other, s, 0, 0) || in[n - 1] != check_word(other, 0, 0, n - 1))
			check_errors++;
		check_compute(compute_ms / 2);
		if (s >= half) {
			double kb = (double)vm_pin_kb();

			sum += kb;
			most = kb > most ? kb : most;
		}
		check_compute(compute_ms / 2);
	}
	qsort(ms + half, (size_t)(steps - half), sizeof *ms, check_by_value);
	if (check_rank == 0)
		printf("pinned: exchange_ms %.3f vmpin_mean_kb %.0f vmpin_max_kb %.0f\n", ms[half + (steps - half) / 2],
		       sum / (steps - half), most);
	return check_end("pinned");
}
