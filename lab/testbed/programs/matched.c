/* Matched probes, buffered sends, replacing exchanges, exchanges of two groups; with MPI-4 also in large counts. */
#include "check.h"

static size_t n;
static int left, right;

static void matched(uint64_t *out, uint64_t *in, int step)
{
	MPI_Request q, r;
	MPI_Message m;
	int flag = 0;

	check_fill(out, n, check_rank, step, 0);
	MPI_Isend(out, (int)n, MPI_UINT64_T, right, 1, MPI_COMM_WORLD, &q);
	MPI_Mprobe(left, 1, MPI_COMM_WORLD, &m, MPI_STATUS_IGNORE);
	MPI_Mrecv(in, (int)n, MPI_UINT64_T, &m, MPI_STATUS_IGNORE);
	MPI_Wait(&q, MPI_STATUS_IGNORE);
	check_same(in, n, left, step, 0);

	check_fill(out, n, check_rank, step, 1);
	MPI_Isend(out, (int)n, MPI_UINT64_T, right, 2, MPI_COMM_WORLD, &q);
	while (!flag)
		MPI_Improbe(left, 2, MPI_COMM_WORLD, &flag, &m, MPI_STATUS_IGNORE);
	MPI_Imrecv(in, (int)n, MPI_UINT64_T, &m, &r);
	MPI_Wait(&r, MPI_STATUS_IGNORE);
	MPI_Wait(&q, MPI_STATUS_IGNORE);
	check_same(in, n, left, step, 1);
}

static void replaced(uint64_t *both, int step)
{
	check_fill(both, n, check_rank, step, 2);
	MPI_Sendrecv_replace(both, (int)n, MPI_UINT64_T, right, 3, left, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	check_same(both, n, left, step, 2);
}

static void buffered(uint64_t *out, uint64_t *in, int step)
{
	int bytes = (int)(16 * n) + 2 * MPI_BSEND_OVERHEAD;
	void *buffer = malloc((size_t)bytes);
	MPI_Request q;

	MPI_Buffer_attach(buffer, bytes);
	check_fill(out, n, check_rank, step, 3);
	MPI_Bsend(out, (int)n, MPI_UINT64_T, right, 4, MPI_COMM_WORLD);
	check_fill(out, n, check_rank, step, 4);
	MPI_Ibsend(out, (int)n, MPI_UINT64_T, right, 5, MPI_COMM_WORLD, &q);
	MPI_Wait(&q, MPI_STATUS_IGNORE);
	memset(out, 0, 8 * n);
	MPI_Recv(in, (int)n, MPI_UINT64_T, left, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	check_same(in, n, left, step, 3);
	MPI_Recv(in, (int)n, MPI_UINT64_T, left, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	check_same(in, n, left, step, 4);
	MPI_Buffer_detach(&buffer, &bytes);
	free(buffer);
}

/* The even ranks and the odd ones: what one group gives, the other gets. */
static void between_groups(uint64_t *out, uint64_t *in, int step)
{
	int others, odd = check_rank & 1, root;
	MPI_Comm group, both;

	MPI_Comm_split(MPI_COMM_WORLD, odd, check_rank, &group);
	MPI_Intercomm_create(group, 0, MPI_COMM_WORLD, !odd, 6, &both);
	MPI_Comm_remote_size(both, &others);

	check_fill(out, n, check_rank, step, 5);
	MPI_Allgather(out, (int)n, MPI_UINT64_T, in, (int)n, MPI_UINT64_T, both);
	for (int r = 0; r < others; r++)
		check_same(in + n * (size_t)r, n, 2 * r + !odd, step, 5);
	root = odd ? 0 : check_rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
	MPI_Gather(out, (int)n, MPI_UINT64_T, in, (int)n, MPI_UINT64_T, root, both);
	for (int r = 0; r < others && root == MPI_ROOT; r++)
		check_same(in + n * (size_t)r, n, 2 * r + 1, step, 5);
	check_fill(out, n, check_rank == 0 ? 0 : 99, step, 6);
	MPI_Bcast(out, (int)n, MPI_UINT64_T, root, both);
	if (odd)
		check_same(out, n, 0, step, 6);
	MPI_Comm_free(&both);
	MPI_Comm_free(&group);
}

#if MPI_VERSION >= 4
static void large_counts(uint64_t *out, uint64_t *in, int step)
{
	size_t size = (size_t)check_size;
	MPI_Count *counts = calloc(size, sizeof *counts);
	MPI_Aint *displs = calloc(size, sizeof *displs);
	MPI_Request q[2];

	check_fill(out, n, check_rank, step, 7);
	MPI_Irecv_c(in, (MPI_Count)n, MPI_UINT64_T, left, 7, MPI_COMM_WORLD, &q[0]);
	MPI_Isendrecv_replace_c(out, (MPI_Count)n, MPI_UINT64_T, check_rank, 8, check_rank, 8, MPI_COMM_WORLD, &q[1]);
	MPI_Wait(&q[1], MPI_STATUS_IGNORE);
	MPI_Send_c(out, (MPI_Count)n, MPI_UINT64_T, right, 7, MPI_COMM_WORLD);
	MPI_Wait(&q[0], MPI_STATUS_IGNORE);
	check_same(in, n, left, step, 7);
	for (size_t r = 0; r < size; r++)
		counts[r] = (MPI_Count)n, displs[r] = (MPI_Aint)(n * (size - 1 - r));
	MPI_Allgatherv_c(out, (MPI_Count)n, MPI_UINT64_T, in, counts, displs, MPI_UINT64_T, MPI_COMM_WORLD);
	for (size_t r = 0; r < size; r++)
		check_same(in + displs[r], n, (int)r, step, 7);
	free(counts);
	free(displs);
}
#else
static void large_counts(uint64_t *out, uint64_t *in, int step) { (void)out, (void)in, (void)step; }
#endif

int main(int argc, char **argv)
{
	int steps = (int)check_arg(argc, argv, 1, 3);

	n = (size_t)check_arg(argc, argv, 2, 128 << 10) / 8;
	check_begin(&argc, &argv);
	left = (check_rank + check_size - 1) % check_size, right = (check_rank + 1) % check_size;
	uint64_t *out = check_alloc(n), *in = check_alloc(n * (size_t)check_size);

	for (int s = 0; s < steps; s++) {
		matched(out, in, s);
		replaced(in, s);
		buffered(out, in, s);
		if (check_size > 1)
			between_groups(out, in, s);
		large_counts(out, in, s);
	}
	return check_end("matched");
}
