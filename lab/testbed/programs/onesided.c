/*
 * One-sided: windows over memory of the program and of MPI, which stay registered
 * for long, while the same memory is sent, too; origin buffers that come and go.
 */
#include "check.h"

static size_t n;
static int left, right;

static void fenced(MPI_Win win, uint64_t *mine, uint64_t *out, uint64_t *in, int step)
{
	check_fill(out, n, check_rank, step, 0);
	check_fill(mine + n, n, check_rank, step, 1);
	MPI_Win_fence(0, win);
	MPI_Put(out, (int)n, MPI_UINT64_T, right, 0, (int)n, MPI_UINT64_T, win);
	MPI_Get(in, (int)n, MPI_UINT64_T, left, (MPI_Aint)n, (int)n, MPI_UINT64_T, win);
	MPI_Win_fence(0, win);
	check_same(mine, n, left, step, 0);
	check_same(in, n, left, step, 1);

	for (size_t i = 0; i < n; i++)
		mine[i] = i, out[i] = (uint64_t)check_rank + 1;
	MPI_Win_fence(0, win);
	MPI_Accumulate(out, (int)n, MPI_UINT64_T, right, 0, (int)n, MPI_UINT64_T, MPI_SUM, win);
	MPI_Win_fence(0, win);
	for (size_t i = 0; i < n; i++)
		check_errors += mine[i] != i + (uint64_t)left + 1;
}

static void locked(MPI_Win win, uint64_t *mine, int step)
{
	uint64_t *out = check_alloc(n), *in = check_alloc(n); /* of this step only */
	MPI_Request q[2];

	check_fill(mine + n, n, check_rank, step, 2);
	check_fill(out, n, check_rank, step, 3);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock_all(0, win);
	MPI_Rput(out, (int)n, MPI_UINT64_T, right, 0, (int)n, MPI_UINT64_T, win, &q[0]);
	MPI_Rget(in, (int)n, MPI_UINT64_T, right, (MPI_Aint)n, (int)n, MPI_UINT64_T, win, &q[1]);
	MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
	MPI_Win_unlock_all(win);
	check_same(in, n, right, step, 2);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock(MPI_LOCK_SHARED, check_rank, 0, win);
	check_same(mine, n, left, step, 3);
	MPI_Win_unlock(check_rank, win);
	MPI_Barrier(MPI_COMM_WORLD);
	free(out);
	free(in);
}

/* The window's own memory as the buffer of an exchange. */
static void sent(uint64_t *mine, int step)
{
	check_fill(mine, n, check_rank, step, 4);
	MPI_Sendrecv(mine, (int)n, MPI_UINT64_T, right, 0, mine + n, (int)n, MPI_UINT64_T, left, 0, MPI_COMM_WORLD,
		     MPI_STATUS_IGNORE);
	check_same(mine + n, n, left, step, 4);
}

int main(int argc, char **argv)
{
	int steps = (int)check_arg(argc, argv, 1, 3);

	n = (size_t)check_arg(argc, argv, 2, 128 << 10) / 8;
	check_begin(&argc, &argv);
	left = (check_rank + check_size - 1) % check_size, right = (check_rank + 1) % check_size;
	uint64_t *out = check_alloc(n), *in = check_alloc(n), *memory[2];
	MPI_Aint bytes = (MPI_Aint)(16 * n);
	MPI_Win win[2];

	memory[0] = check_alloc(2 * n);
	sent(memory[0], 99); /* MPI knows the buffer before it becomes a window */
	MPI_Win_create(memory[0], bytes, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &win[0]);
	MPI_Win_allocate(bytes, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &memory[1], &win[1]);
	for (int s = 0; s < steps; s++)
		for (int w = 0; w < 2; w++) {
			fenced(win[w], memory[w], out, in, s);
			locked(win[w], memory[w], s);
			sent(memory[w], s);
		}
	MPI_Win_free(&win[1]);
	MPI_Win_free(&win[0]);
	sent(memory[0], 98);
	free(memory[0]);
	return check_end("onesided");
}
