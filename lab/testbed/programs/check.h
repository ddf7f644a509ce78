/* What the MPI test programs share: patterns that tell where data came from, and the verdict. */
#ifndef CHECK_H
#define CHECK_H

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

static int check_rank, check_size;
static long check_errors;

static inline uint64_t check_word(int from, int step, int what, size_t i)
{
	uint64_t x = ((uint64_t)from << 48) ^ ((uint64_t)step << 32) ^ ((uint64_t)what << 56) ^ i;

	x *= 0x9e3779b97f4a7c15ull;
	return x ^ x >> 29;
}

static inline void check_fill(uint64_t *b, size_t n, int from, int step, int what)
{
	for (size_t i = 0; i < n; i++)
		b[i] = check_word(from, step, what, i);
}

static inline void check_same(const uint64_t *b, size_t n, int from, int step, int what)
{
	for (size_t i = 0; i < n; i++)
		if (b[i] != check_word(from, step, what, i)) {
			if (check_errors++ == 0)
				fprintf(stderr, "rank %d step %d: word %zu of what rank %d sent is %#lx, not %#lx\n", check_rank,
					step, i, from, (unsigned long)b[i], (unsigned long)check_word(from, step, what, i));
			return;
		}
}

/* An argument, or what is usual. */
static inline long check_arg(int argc, char **argv, int i, long usual) { return argc > i ? atol(argv[i]) : usual; }

static inline void check_compute(double ms)
{
	struct timespec t = {(time_t)(ms / 1e3), (long)((ms - 1e3 * (long)(ms / 1e3)) * 1e6)};

	if (ms > 0)
		nanosleep(&t, NULL);
}

/* Orders doubles, for qsort(3). */
static inline int check_by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static inline uint64_t *check_alloc(size_t words)
{
	uint64_t *b = (uint64_t *)malloc(words * sizeof *b);

	if (!b) {
		fprintf(stderr, "rank %d: no memory\n", check_rank);
		MPI_Abort(MPI_COMM_WORLD, 3);
	}
	return b;
}

/* Pages of their own, for munmap(2). */
static inline uint64_t *check_map(size_t words)
{
	void *p = mmap(NULL, words * sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED) {
		fprintf(stderr, "rank %d: no memory\n", check_rank);
		MPI_Abort(MPI_COMM_WORLD, 3);
	}
	return (uint64_t *)p;
}

/* Every rank sends out to the next one and gets in from the one before it. Both are n words. */
static inline void check_exchange(uint64_t *out, uint64_t *in, size_t n, int step, int what)
{
	int left = (check_rank + check_size - 1) % check_size, right = (check_rank + 1) % check_size;

	check_fill(out, n, check_rank, step, what);
	memset(in, 0, n * sizeof *in);
	MPI_Sendrecv(out, (int)n, MPI_UINT64_T, right, what, in, (int)n, MPI_UINT64_T, left, what, MPI_COMM_WORLD,
		     MPI_STATUS_IGNORE);
	check_same(in, n, left, step, what);
}

static inline void check_begin(int *argc, char ***argv)
{
	MPI_Init(argc, argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
	MPI_Comm_size(MPI_COMM_WORLD, &check_size);
}

/* Exit status: 0 if every rank found its data right. */
static inline int check_end(const char *name)
{
	long all = 0;

	MPI_Allreduce(&check_errors, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
	if (check_rank == 0)
		printf("%s: %d ranks, %s\n", name, check_size, all ? "DATA WRONG" : "data right");
	MPI_Finalize();
	return all != 0;
}

#endif
