/*
 * How much a rank's processor is disturbed: quanta of fixed work, each timed (Sottile and Minnich, "Analysis of
 * Microbenchmarks for Performance Tuning of Clusters", 2004), and between them exchanges of large buffers.
 *
 *	quanta PLACE BYTES STEPS QUANTA MORE PASSES
 *
 * In each step every rank works for QUANTA quanta, and one of them, in turn, for MORE of them. Then it sends a
 * small message to its right neighbor, for which the others wait. It says when it was sent, so that the neighbor
 * knows how late its wait ended. Last, all exchange two buffers of BYTES, another pair in every second step.
 * A quantum is PASSES passes over 16 KiB. PLACE is "own" to bind each rank and its helper to a processor of
 * its own, "rank" to bind the ranks only, or "free".
 *
 * Rank 0 prints a line of JSON for each rank. All times are in nanoseconds; "cpu" is the processor time of the
 * quanta.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <unistd.h>

#include "../../../mpishim/testing/programs/check.h"

#define STRIDE 512 /* words of a page */

/* durations of quanta; their processor times; ends of waits after what they waited for was sent */
static double *quantum, *cpu, *delay;
static long quanta, delays, passes;
static size_t words;

static int64_t clock_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static int64_t now(void) { return clock_ns(CLOCK_MONOTONIC); }

/* Binds this process to the processor whose turn it is, before any thread of it exists, and starts anew so that
 * Pinwheel reads where its helper runs. */
static void bind_rank(char **argv)
{
	static const char *const names[] = {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"};
	const char *local = NULL;
	cpu_set_t may, own;
	char text[16];
	int left, at = 0;

	for (size_t i = 0; i < sizeof names / sizeof *names && !local; i++)
		local = getenv(names[i]);
	if (!local || getenv("QUANTA_BOUND") || sched_getaffinity(0, sizeof may, &may))
		return;
	for (left = atoi(local) % CPU_COUNT(&may); !CPU_ISSET(at, &may) || left-- > 0;)
		at++;
	CPU_ZERO(&own);
	CPU_SET(at, &own);
	sched_setaffinity(0, sizeof own, &own);
	snprintf(text, sizeof text, "%d", at);
	if (!strcmp(argv[1], "own"))
		setenv("PINWHEEL_HELPER_CPU", text, 0);
	setenv("QUANTA_BOUND", text, 1);
	execv(argv[0], argv);
}

static void work(void)
{
	static double grid[2048]; /* 16 KiB, as the first cache of a processor holds */
	int64_t used = clock_ns(CLOCK_THREAD_CPUTIME_ID), start = now();

	for (long p = 0; p < passes; p++) {
		for (size_t i = 1; i + 1 < sizeof grid / sizeof *grid; i++)
			grid[i] = 0.5 * grid[i] + 0.25 * (grid[i - 1] + grid[i + 1]) + 1e-3;
		__asm__ volatile("" ::: "memory");
	}
	quantum[quanta] = (double)(now() - start);
	cpu[quanta++] = (double)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - used);
}

/* Sends a message to the right, and waits for that from the left. */
static void token(int left, int right, int step)
{
	int64_t entered, sent, mine;
	MPI_Request q;

	mine = now();
	MPI_Isend(&mine, 1, MPI_INT64_T, right, step, MPI_COMM_WORLD, &q);
	entered = now();
	MPI_Recv(&sent, 1, MPI_INT64_T, left, step, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	if (entered < sent)
		delay[delays++] = (double)(now() - sent);
	MPI_Wait(&q, MPI_STATUS_IGNORE);
}

static void exchange(int left, int right, int step, uint64_t *out, uint64_t *in)
{
	for (size_t i = 0; i < words; i += STRIDE)
		out[i] = check_word(check_rank, step, 0, i);
	MPI_Sendrecv(out, (int)words, MPI_UINT64_T, right, 0, in, (int)words, MPI_UINT64_T, left, 0, MPI_COMM_WORLD,
		     MPI_STATUS_IGNORE);
	for (size_t i = 0; i < words; i += STRIDE)
		if (in[i] != check_word(left, step, 0, i))
			check_errors++;
}

static double at(const double *sorted, long n, double share) { return n ? sorted[(long)(share * (double)(n - 1))] : 0; }

/* What is told of some durations: number, sum, least, median, 99th percentile, greatest. */
enum { COUNT, SUM, LEAST, P50, P99, MOST, FIGURES };

static void figures(double *f, double *v, long n)
{
	f[COUNT] = (double)n;
	f[SUM] = 0;
	for (long i = 0; i < n; i++)
		f[SUM] += v[i];
	qsort(v, (size_t)n, sizeof *v, check_by_value);
	f[LEAST] = at(v, n, 0);
	f[P50] = at(v, n, 0.5);
	f[P99] = at(v, n, 0.99);
	f[MOST] = at(v, n, 1);
}

static void print(const char *name, const double *f)
{
	printf("\"%s\":{\"n\":%.0f,\"sum_ns\":%.0f,\"least_ns\":%.0f,\"p50_ns\":%.0f,\"p99_ns\":%.0f,\"max_ns\":%.0f}", name,
	       f[COUNT], f[SUM], f[LEAST], f[P50], f[P99], f[MOST]);
}

int main(int argc, char **argv)
{
	long steps = check_arg(argc, argv, 3, 100), each = check_arg(argc, argv, 4, 40), more = check_arg(argc, argv, 5, 20);
	double mine[3][FIGURES], (*all)[3][FIGURES] = NULL;
	uint64_t *b[4];
	int left, right;

	if (argc > 1 && strcmp(argv[1], "free"))
		bind_rank(argv);
	check_begin(&argc, &argv);
	words = (size_t)check_arg(argc, argv, 2, 8 << 20) / 8 / STRIDE * STRIDE;
	passes = check_arg(argc, argv, 6, 45);
	left = (check_rank + check_size - 1) % check_size;
	right = (check_rank + 1) % check_size;
	for (int i = 0; i < 4; i++)
		b[i] = check_alloc(words);
	quantum = malloc((size_t)(steps * (each + more)) * sizeof *quantum);
	cpu = malloc((size_t)(steps * (each + more)) * sizeof *cpu);
	delay = malloc((size_t)steps * sizeof *delay);
	for (int s = 0; s < steps; s++) {
		for (long k = each + (s % check_size == check_rank ? more : 0); k > 0; k--)
			work();
		token(left, right, s);
		exchange(left, right, s, b[s % 2], b[2 + s % 2]);
	}
	figures(mine[0], quantum, quanta);
	figures(mine[1], cpu, quanta);
	figures(mine[2], delay, delays);
	if (check_rank == 0)
		all = malloc(sizeof mine * (size_t)check_size);
	MPI_Gather(mine, 3 * FIGURES, MPI_DOUBLE, all, 3 * FIGURES, MPI_DOUBLE, 0, MPI_COMM_WORLD);
	for (int r = 0; all && r < check_size; r++) {
		printf("{\"rank\":%d,", r);
		print("quanta", all[r][0]);
		printf(",");
		print("cpu", all[r][1]);
		printf(",");
		print("waits", all[r][2]);
		printf("}\n");
	}
	return check_end("quanta");
}
