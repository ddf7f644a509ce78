/* Buckets whose sizes change from step to step, as IS sorts: alltoall of the counts, alltoallv of the keys. */
#include "check.h"

static int count_of(int from, int to, long step, long words)
{
	return (int)(words / 4 + (long)(check_word(from, (int)step, to, 7) % (uint64_t)words));
}

int main(int argc, char **argv)
{
	long steps = check_arg(argc, argv, 1, 6), words = check_arg(argc, argv, 2, 16384);

	check_begin(&argc, &argv);
	int *scount = calloc(4 * (size_t)check_size, sizeof(int)), *rcount = scount + check_size;
	int *sdispl = rcount + check_size, *rdispl = sdispl + check_size;
	size_t most = (size_t)check_size * (size_t)words * 2;
	uint64_t *out = check_alloc(most), *in = check_alloc(most);

	for (long s = 0; s < steps; s++) {
		int at = 0;

		for (int r = 0; r < check_size; r++) {
			scount[r] = count_of(check_rank, r, s, words);
			sdispl[r] = at;
			check_fill(out + at, (size_t)scount[r], check_rank, (int)s, r);
			at += scount[r];
		}
		MPI_Alltoall(scount, 1, MPI_INT, rcount, 1, MPI_INT, MPI_COMM_WORLD);
		at = 0;
		for (int r = 0; r < check_size; r++) {
			if (rcount[r] != count_of(r, check_rank, s, words))
				check_errors++;
			rdispl[r] = at;
			at += rcount[r];
		}
		MPI_Alltoallv(out, scount, sdispl, MPI_UINT64_T, in, rcount, rdispl, MPI_UINT64_T, MPI_COMM_WORLD);
		for (int r = 0; r < check_size; r++)
			check_same(in + rdispl[r], (size_t)rcount[r], r, (int)s, check_rank);
	}
	return check_end("alltoallv");
}
