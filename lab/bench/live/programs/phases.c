/*
 * Exchanges of large buffers with compute phases between them:
 *
 *	phases ring|halo|transpose|alltoall BYTES STEPS PASSES
 *
 * BYTES is the size of each buffer. ring passes one buffer to the right, halo exchanges two with
 * both neighbours, transpose sends one array through MPI_Alltoall and back, alltoall sends two
 * arrays in turn. PASSES over private memory are the compute phase: a fixed amount of work, so that
 * processor time can be compared. One word of each page is verified.
 */
#include "../../../testbed/programs/check.h"

#define STRIDE 512 /* words of a page */

static size_t words;
static long passes;

static void fill(uint64_t *b, size_t n, int step, int what)
{
	for (size_t i = 0; i < n; i += STRIDE)
		b[i] = check_word(check_rank, step, what, i);
}

/* Words from "from" on of what a rank sent, at the beginning of b. */
static void same(const uint64_t *b, size_t n, int rank, int step, int what, size_t from)
{
	for (size_t i = 0; i < n; i += STRIDE)
		if (b[i] != check_word(rank, step, what, from + i) && check_errors++ == 0)
			fprintf(stderr, "rank %d step %d: word %zu of what rank %d sent is wrong\n", check_rank, step, from + i, rank);
}

static void compute(void)
{
	static double grid[32768]; /* 256 KiB, as the cache of a processor holds */

	for (long p = 0; p < passes; p++) {
		for (size_t i = 1; i + 1 < sizeof grid / sizeof *grid; i++)
			grid[i] = 0.5 * grid[i] + 0.25 * (grid[i - 1] + grid[i + 1]) + 1e-3;
		__asm__ volatile("" ::: "memory");
	}
}

static void ring(int step, uint64_t **b)
{
	int left = (check_rank + check_size - 1) % check_size, right = (check_rank + 1) % check_size;

	fill(b[0], words, step, 0);
	MPI_Sendrecv(b[0], (int)words, MPI_UINT64_T, right, 0, b[1], (int)words, MPI_UINT64_T, left, 0, MPI_COMM_WORLD,
		     MPI_STATUS_IGNORE);
	same(b[1], words, left, step, 0, 0);
	compute();
}

static void halo(int step, uint64_t **b)
{
	int left = (check_rank + check_size - 1) % check_size, right = (check_rank + 1) % check_size, n = (int)words;
	MPI_Request q[4];

	fill(b[0], words, step, 0);
	fill(b[1], words, step, 1);
	MPI_Irecv(b[2], n, MPI_UINT64_T, left, 0, MPI_COMM_WORLD, &q[0]);
	MPI_Irecv(b[3], n, MPI_UINT64_T, right, 1, MPI_COMM_WORLD, &q[1]);
	MPI_Isend(b[0], n, MPI_UINT64_T, right, 0, MPI_COMM_WORLD, &q[2]);
	MPI_Isend(b[1], n, MPI_UINT64_T, left, 1, MPI_COMM_WORLD, &q[3]);
	MPI_Waitall(4, q, MPI_STATUSES_IGNORE);
	same(b[2], words, left, step, 0, 0);
	same(b[3], words, right, step, 1, 0);
	compute();
}

/* Sends out, which has the pattern "what", and verifies what comes in. */
static void exchange(int step, int what, uint64_t *out, uint64_t *in)
{
	size_t block = words / (size_t)check_size;

	fill(out, words, step, what);
	MPI_Alltoall(out, (int)block, MPI_UINT64_T, in, (int)block, MPI_UINT64_T, MPI_COMM_WORLD);
	for (int r = 0; r < check_size; r++)
		same(in + (size_t)r * block, block, r, step, what, (size_t)check_rank * block);
	compute();
}

static void transpose(int step, uint64_t **b)
{
	exchange(step, 0, b[0], b[1]);
	exchange(step, 1, b[1], b[0]);
}

static void alltoall(int step, uint64_t **b) { exchange(step, 0, b[step % 2], b[2 + step % 2]); }

static const struct {
	const char *name;
	void (*step)(int step, uint64_t **buffers);
	int buffers;
} patterns[] = {{"ring", ring, 2}, {"halo", halo, 4}, {"transpose", transpose, 2}, {"alltoall", alltoall, 4}};

int main(int argc, char **argv)
{
	long steps = check_arg(argc, argv, 3, 10);
	uint64_t *b[4];
	size_t p = 0, unit;

	check_begin(&argc, &argv);
	while (p < sizeof patterns / sizeof *patterns && (argc < 2 || strcmp(argv[1], patterns[p].name)))
		p++;
	if (p == sizeof patterns / sizeof *patterns) {
		fprintf(stderr, "phases: the pattern is ring, halo, transpose or alltoall\n");
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	unit = STRIDE * (size_t)check_size; /* whole pages in each block */
	words = (size_t)check_arg(argc, argv, 2, 1 << 20) / 8 / unit * unit;
	passes = check_arg(argc, argv, 4, 1000);
	for (int i = 0; i < patterns[p].buffers; i++)
		b[i] = check_alloc(words);
	for (int s = 0; s < steps; s++)
		patterns[p].step(s, b);
	return check_end(patterns[p].name);
}
