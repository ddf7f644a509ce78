/*
 * What a large message costs beside its registration: MPI_Send of the stand-in,
 * in nanoseconds, over a number of buffers in turn. Run it without the preload
 * library, with it passing everything through, and with it managing: the
 * differences are the overhead of the path.
 *
 *   path [BUFFERS [ROUNDS [PAUSE_US [MESSAGES]]]]    MESSAGES are timed together, then a pause
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "standin.h"
#include "timing.h"

#define BYTES (64 << 10)

/* A transport's 100 GiB with on-demand paging, of which nothing is pinned. */
static void *on_demand(void)
{
	static void *pd[1] = {pd};
	const size_t bytes = 100ull << 30;
	void *p = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : ibv_reg_mr(pd, p, bytes, 0x40 /* IBV_ACCESS_ON_DEMAND */);
}

int main(int argc, char **argv)
{
	int buffers = argc > 1 ? atoi(argv[1]) : 16, rounds = argc > 2 ? atoi(argv[2]) : 2000;
	long pause_us = argc > 3 ? atol(argv[3]) : 200;
	int messages = argc > 4 ? atoi(argv[4]) : 256;
	double *ns = calloc((size_t)rounds, sizeof *ns);
	char **buf = calloc((size_t)buffers, sizeof *buf);
	int failed = MPI_Init(&argc, &argv);
	void *paged = getenv("STANDIN_ON_DEMAND") ? on_demand() : NULL;

	standin_leaves_pages = 1;
	for (int i = 0; i < buffers; i++) {
		if (posix_memalign((void **)&buf[i], 4096, BYTES))
			return 3;
		memset(buf[i], 1, BYTES);
	}
	for (int r = 0; r < rounds; r++) {
		struct timespec pause = {0, pause_us * 1000};
		uint64_t start = now();

		for (int k = 0; k < messages; k++)
			failed += MPI_Send(buf[k % buffers], BYTES, &ompi_mpi_byte, 0, 0, &ompi_mpi_comm_world);
		ns[r] = (double)(now() - start) / messages;
		if (pause_us)
			nanosleep(&pause, NULL); /* the helper looks at its queue */
	}
	if (paged)
		ibv_dereg_mr(paged);
	failed += MPI_Finalize();
	qsort(ns, (size_t)rounds, sizeof *ns, by_value);
	printf("%.1f %.1f %.1f\n", ns[rounds / 4], ns[rounds / 2], ns[rounds * 3 / 4]);
	if (failed)
		fprintf(stderr, "path: %d calls failed\n", failed);
	return failed != 0;
}
