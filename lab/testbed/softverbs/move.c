/* Bytes from one list of memory regions to another, through the pages that are pinned on both sides and a pipe. */
#include "sv.h"
#include <fcntl.h>

#define PIPES 16
#define WANTED (512 << 10)
#define MARGIN (16 * 4096) /* pieces that do not fill their pages */

struct conduit {
	int r, w;
	uint64_t bytes; /* that it surely takes */
};

static struct conduit idle[PIPES];
static int nidle;
static pid_t owner;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int conduit_get(struct conduit *c)
{
	int fd[2], got = 0, size;

	pthread_mutex_lock(&lock);
	if (owner != getpid()) /* after a fork they are the parent's */
		nidle = 0, owner = getpid();
	if (nidle)
		*c = idle[--nidle], got = 1;
	pthread_mutex_unlock(&lock);
	if (got)
		return 0;
	if (pipe2(fd, O_CLOEXEC))
		return errno;
	size = fcntl(fd[0], F_SETPIPE_SZ, WANTED); /* refused if the user has too many */
	if (size < 0)
		size = fcntl(fd[0], F_GETPIPE_SZ);
	*c = (struct conduit){fd[0], fd[1], size > 2 * MARGIN ? (uint64_t)size - MARGIN : 4096};
	return 0;
}

static void conduit_put(struct conduit *c, int empty)
{
	int kept = 0;

	pthread_mutex_lock(&lock);
	if (empty && nidle < PIPES)
		idle[nidle++] = *c, kept = 1;
	pthread_mutex_unlock(&lock);
	if (!kept) {
		close(c->r);
		close(c->w);
	}
}

struct cursor {
	const struct ibv_sge *sge, *end;
	uint64_t done; /* of sge */
};

/* Up to bytes between the pipe and the pieces; how many, or -1. */
static int64_t pass(struct cursor *c, enum sv_direction d, int fd, uint64_t bytes)
{
	uint64_t all = bytes;

	for (int pieces = 0; bytes && (d == SV_IN || pieces < 8); pieces++) {
		uint64_t n;

		while (c->sge < c->end && c->done == c->sge->length)
			c->sge++, c->done = 0;
		if (c->sge == c->end)
			return -1;
		n = c->sge->length - c->done < bytes ? c->sge->length - c->done : bytes;
		while (n) {
			ssize_t m = sv_ring_move(c->sge->lkey, d, fd, c->sge->addr + c->done, n);

			if (m <= 0)
				return -1;
			n -= (uint64_t)m, bytes -= (uint64_t)m, c->done += (uint64_t)m;
		}
	}
	return (int64_t)(all - bytes);
}

/*
 * A small send goes as inline data does: out of the mapping, by one call less. 0: through the ring, as all else,
 * if its page is no longer mapped, or if it has two pages and could be cut.
 */
static int64_t copy_small(const struct sv_side *src, int fd, uint64_t bytes)
{
	const struct sv_key *k;
	uint64_t at;

	if (!src->send || src->nsge != 1 || bytes > SV_INLINE)
		return 0;
	k = &sv->key[src->sge->lkey >> 8 & (SV_KEYS - 1)];
	at = k->addr + (src->sge->addr - k->iova);
	if (at >> 12 != (at + bytes - 1) >> 12)
		return 0;
	return write(fd, (void *)(uintptr_t)at, bytes) == (ssize_t)bytes ? (int64_t)bytes : 0;
}

int sv_move(const struct sv_side *dst, const struct sv_side *src, uint64_t bytes)
{
	struct cursor to = {dst->sge, dst->sge + dst->nsge, 0}, from = {src->sge, src->sge + src->nsge, 0};
	struct conduit c;
	int failed = 0;

	if (!bytes)
		return 0;
	if (conduit_get(&c))
		return SV_MOVE_SRC;
	while (bytes && !failed) {
		uint64_t part = bytes < c.bytes ? bytes : c.bytes;
		int64_t n;

		if (src->inlined) /* at most SV_INLINE bytes */
			n = write(c.w, src->inlined, part);
		else if (!(n = copy_small(src, c.w, bytes)))
			n = pass(&from, SV_OUT, c.w, part);
		if (n <= 0)
			failed = SV_MOVE_SRC;
		else if (pass(&to, SV_IN, c.r, (uint64_t)n) < 0)
			failed = SV_MOVE_DST;
		else
			bytes -= (uint64_t)n;
	}
	conduit_put(&c, !failed);
	return failed;
}

/* Eight bytes of a region. */
int sv_fetch(const struct sv_side *src, uint64_t *value)
{
	struct cursor from = {src->sge, src->sge + src->nsge, 0};
	struct conduit c;
	int failed;

	if (conduit_get(&c))
		return SV_MOVE_SRC;
	failed = pass(&from, SV_OUT, c.w, sizeof(*value)) != sizeof(*value) ||
		 read(c.r, value, sizeof(*value)) != sizeof(*value);
	conduit_put(&c, !failed);
	return failed ? SV_MOVE_SRC : 0;
}
