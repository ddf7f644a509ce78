/*
 * Completion channels and asynchronous events are pipes, into which other processes write too. The end to
 * write to can also be read, so that nobody who writes after the death of the reader gets SIGPIPE.
 */
#include "sv.h"
#include <fcntl.h>

#define KNOWN 512 /* descriptors fetched from others */

int sv_bell_make(int *reader, struct sv_bell *b)
{
	static uint32_t serial;
	char path[32];
	int fd[2];

	if (pipe2(fd, O_CLOEXEC))
		return errno;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd[0]);
	b->fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	close(fd[1]);
	if (b->fd < 0) {
		close(fd[0]);
		return errno;
	}
	*reader = fd[0];
	b->serial = __atomic_add_fetch(&serial, 1, __ATOMIC_RELAXED);
	return 0;
}

/* The caller holds the lock of an object that uses b: its owner can't close it now. */
void sv_bell_ring(uint32_t proc, const struct sv_bell *b, struct sv_note n)
{
	static struct { uint32_t gen, proc, serial; int fd; } known[KNOWN];
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	uint32_t gen = sv->proc[proc].gen;

	if (proc == sv_me) {
		if (write(b->fd, &n, sizeof(n)) != sizeof(n))
			sv_say("event lost: nobody reads them");
		return;
	}
	pthread_mutex_lock(&lock);
	typeof(&known[0]) k = &known[(proc * 31 + b->serial) % KNOWN];

	if (k->gen != gen || k->proc != proc || k->serial != b->serial) {
		if (k->gen)
			close(k->fd);
		k->fd = sv_peer_fd(proc, b->fd);
		k->gen = k->fd < 0 ? 0 : gen, k->proc = proc, k->serial = b->serial;
	}
	if (k->gen && write(k->fd, &n, sizeof(n)) != sizeof(n))
		sv_say("event lost: process %d reads none", sv->proc[proc].pid);
	pthread_mutex_unlock(&lock);
}
