/* What the programs of these tests share. Define _GNU_SOURCE before. */
#ifndef CHECK_H
#define CHECK_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

static int failures;

#define IS(want, call) is(want, call, #call, __LINE__)

static inline void is(long want, long got, const char *what, int line)
{
	if (want == got)
		return;
	printf("line %d: %s: %ld, not %ld\n", line, what, got, want);
	failures++;
}

#define MUST(call) do { if (!(call)) { printf("line %d: failed: %s\n", __LINE__, #call); exit(1); } } while (0)

static inline char *memory(size_t bytes)
{
	char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	MUST(at != MAP_FAILED);
	memset(at, 1, bytes);
	return at;
}

/* Maps it anew, at the same address. */
static inline void map_anew(char *at, size_t bytes)
{
	MUST(mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at);
	memset(at, 2, bytes);
}

/* A registration for anyone: a pipe holds the pages, which nobody else gets before pipe[1] and pipe[0] are closed. */
struct pin {
	int pipe[2];
};

static inline void unpin(struct pin *p)
{
	close(p->pipe[0]);
	close(p->pipe[1]);
}

/* Fails where not all is mapped. */
static inline int pin(struct pin *p, char *at, size_t bytes)
{
	struct iovec all = {at, bytes};

	MUST(!pipe(p->pipe) && fcntl(p->pipe[1], F_SETPIPE_SZ, 1 << 20) >= 0);
	if (vmsplice(p->pipe[1], &all, 1, SPLICE_F_NONBLOCK) == (ssize_t)bytes)
		return 0;
	unpin(p);
	return -1;
}

static inline int finish(void)
{
	if (!failures)
		printf("all as the header says\n");
	return failures > 0;
}

#endif
