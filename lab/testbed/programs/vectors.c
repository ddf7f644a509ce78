/* Collectives whose parts differ in size, place or type, blocking and not. */
#include "check.h"

static size_t n;
static MPI_Comm comm = MPI_COMM_WORLD;
static int *counts, *displs; /* rank r has n / 2 + r * n / 8 words, with a gap before each part */

static void gather_and_scatter(uint64_t *part, uint64_t *all, int step, int root)
{
	size_t mine = (size_t)counts[check_rank];
	MPI_Request q;

	check_fill(part, mine, check_rank, step, 0);
	MPI_Gatherv(part, (int)mine, MPI_UINT64_T, all, counts, displs, MPI_UINT64_T, root, comm);
	for (int r = 0; r < check_size && check_rank == root; r++)
		check_same(all + displs[r], (size_t)counts[r], r, step, 0);
	MPI_Allgatherv(part, (int)mine, MPI_UINT64_T, all, counts, displs, MPI_UINT64_T, comm);
	for (int r = 0; r < check_size; r++)
		check_same(all + displs[r], (size_t)counts[r], r, step, 0);
	for (int r = 0; r < check_size && check_rank == root; r++)
		check_fill(all + displs[r], (size_t)counts[r], r, step, 1);
	MPI_Scatterv(all, counts, displs, MPI_UINT64_T, part, (int)mine, MPI_UINT64_T, root, comm);
	check_same(part, mine, check_rank, step, 1);
	MPI_Igatherv(part, (int)mine, MPI_UINT64_T, all, counts, displs, MPI_UINT64_T, root, comm, &q);
	MPI_Wait(&q, MPI_STATUS_IGNORE);
	for (int r = 0; r < check_size && check_rank == root; r++)
		check_same(all + displs[r], (size_t)counts[r], r, step, 1);
}

/* Rank r sends n words to each as bytes and gets them as words: types and displacements of each part. */
static void all_to_all_w(uint64_t *out, uint64_t *in, int step, int nonblocking)
{
	size_t size = (size_t)check_size;
	int *sc = calloc(4 * size, sizeof *sc), *rc = sc + size, *sd = rc + size, *rd = sd + size;
	MPI_Datatype *st = calloc(2 * size, sizeof *st), *rt = st + size;
	MPI_Request q;

	for (int r = 0; r < check_size; r++) {
		st[r] = MPI_BYTE, sc[r] = (int)(8 * n), rt[r] = MPI_UINT64_T, rc[r] = (int)n;
		sd[r] = (int)(8 * n) * r, rd[r] = (int)(8 * n) * (check_size - 1 - r);
		check_fill(out + n * (size_t)r, n, check_rank, step, r);
	}
	if (nonblocking) {
		MPI_Ialltoallw(out, sc, sd, st, in, rc, rd, rt, comm, &q);
		MPI_Wait(&q, MPI_STATUS_IGNORE);
	} else {
		MPI_Alltoallw(out, sc, sd, st, in, rc, rd, rt, comm);
	}
	for (int r = 0; r < check_size; r++)
		check_same(in + n * (size_t)(check_size - 1 - r), n, r, step, check_rank);
	free(sc);
	free(st);
}

static void check_sums(const uint64_t *b, size_t words, size_t first, int step)
{
	uint64_t ranks = (uint64_t)check_size;

	for (size_t i = 0; i < words; i++)
		check_errors += b[i] != ranks * (first + i + (uint64_t)step) + ranks * (ranks - 1) / 2;
}

static void fill_numbers(uint64_t *b, size_t words, int step)
{
	for (size_t i = 0; i < words; i++)
		b[i] = i + (uint64_t)step + (uint64_t)check_rank;
}

static void reduce_scatter(uint64_t *out, uint64_t *in, int step)
{
	size_t first = 0, all = 0, mine = (size_t)counts[check_rank];
	MPI_Request q;

	for (int r = 0; r < check_size; all += (size_t)counts[r++])
		first += r < check_rank ? (size_t)counts[r] : 0;
	fill_numbers(out, all, step);
	MPI_Reduce_scatter(out, in, counts, MPI_UINT64_T, MPI_SUM, comm);
	check_sums(in, mine, first, step);
	memset(in, 0, 8 * mine);
	MPI_Ireduce_scatter(out, in, counts, MPI_UINT64_T, MPI_SUM, comm, &q);
	MPI_Wait(&q, MPI_STATUS_IGNORE);
	check_sums(in, mine, first, step);
	MPI_Reduce_scatter(MPI_IN_PLACE, out, counts, MPI_UINT64_T, MPI_SUM, comm);
	check_sums(out, mine, first, step);
	fill_numbers(out, n * (size_t)check_size, step);
	MPI_Reduce_scatter_block(out, in, (int)n, MPI_UINT64_T, MPI_SUM, comm);
	check_sums(in, n, n * (size_t)check_rank, step);
}

int main(int argc, char **argv)
{
	int steps = (int)check_arg(argc, argv, 1, 3), at = 0;

	n = (size_t)check_arg(argc, argv, 2, 128 << 10) / 8;
	check_begin(&argc, &argv);
	counts = calloc(2 * (size_t)check_size, sizeof *counts), displs = counts + check_size;
	for (int r = 0; r < check_size; r++) {
		displs[r] = at + 3;
		counts[r] = (int)(n / 2 + (size_t)r * n / 8);
		at = displs[r] + counts[r];
	}
	size_t words = (size_t)at > n * (size_t)check_size ? (size_t)at : n * (size_t)check_size;
	uint64_t *a = check_alloc(words), *b = check_alloc(words);

	for (int s = 0; s < steps; s++) {
		gather_and_scatter(a, b, s, s % check_size);
		all_to_all_w(a, b, s, s & 1);
		reduce_scatter(a, b, s);
	}
	return check_end("vectors");
}
