/*
 * Reaching into another process: its descriptors, and its read-only memory. The number of a process is used again
 * after its end, so a process is known by a pidfd, which is opened once and checked by the time of its start.
 */
#include "sv.h"
#include <poll.h>
#include <sys/syscall.h>
#include <sys/uio.h>

static struct {
	uint32_t gen; /* of the process; 0: none */
	int pidfd;
} peer[SV_PROCS];
static pid_t owner;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* In clock ticks since the machine's start: field 22 of proc(5), stat. 0: there is no such process. */
uint64_t sv_started(pid_t pid)
{
	unsigned long long ticks = 0;
	char path[32], line[1024], *rest;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (!(f = fopen(path, "re")))
		return 0;
	/* The name of the program, in parentheses, may contain anything. */
	if (fgets(line, sizeof(line), f) && (rest = strrchr(line, ')')))
		sscanf(rest + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu", &ticks);
	fclose(f);
	return ticks;
}

/* A pidfd, or -errno; with the lock. If the process lives after the opening, it is the one that was opened. */
static int open_peer(uint32_t proc)
{
	const struct sv_proc *p = &sv->proc[proc];
	uint32_t gen = __atomic_load_n(&p->gen, __ATOMIC_ACQUIRE);
	int fd;

	if (owner != getpid()) { /* after a fork they are the parent's */
		for (uint32_t i = 0; i < SV_PROCS; i++)
			if (peer[i].gen)
				close(peer[i].pidfd), peer[i].gen = 0;
		owner = getpid();
	}
	if (peer[proc].gen == gen)
		return peer[proc].pidfd;
	if (peer[proc].gen)
		close(peer[proc].pidfd);
	peer[proc].gen = 0;
	if ((fd = (int)syscall(SYS_pidfd_open, p->pid, 0)) < 0)
		return -errno;
	if (sv_started(p->pid) != p->started) {
		close(fd);
		return -ESRCH;
	}
	peer[proc].gen = gen, peer[proc].pidfd = fd;
	if (proc != sv_me)
		sv_thread_watch(proc, fd);
	return fd;
}

void sv_peer_drop(uint32_t proc)
{
	pthread_mutex_lock(&lock);
	if (peer[proc].gen)
		close(peer[proc].pidfd);
	peer[proc].gen = 0;
	pthread_mutex_unlock(&lock);
}

/* Why a process of the same user lets nobody fetch its descriptors; scope_file is Yama's. */
void sv_refusal(char *line, size_t size, pid_t pid, const char *scope_file)
{
	FILE *f = fopen(scope_file, "re");
	int scope = -1;

	if (f && fscanf(f, "%d", &scope) != 1)
		scope = -1;
	if (f)
		fclose(f);
	if (scope > 1)
		snprintf(line, size, "no transfers with process %d: %s is %d, and the device needs 0 or 1", pid,
			 scope_file, scope);
	else
		snprintf(line, size, "no transfers with process %d: it lets nobody fetch its descriptors "
			 "(prctl(PR_SET_DUMPABLE), a security module, another user namespace)", pid);
}

int sv_peer_fd(uint32_t proc, int fd)
{
	static int told;
	char line[256];
	int pidfd, got;

	pthread_mutex_lock(&lock);
	got = pidfd = open_peer(proc);
	if (pidfd >= 0 && (got = (int)syscall(SYS_pidfd_getfd, pidfd, fd, 0)) < 0)
		got = -errno;
	pthread_mutex_unlock(&lock);
	if (got == -EPERM && !__atomic_exchange_n(&told, 1, __ATOMIC_RELAXED)) {
		sv_refusal(line, sizeof(line), sv->proc[proc].pid, "/proc/sys/kernel/yama/ptrace_scope");
		sv_say("%s", line);
	}
	return got;
}

ssize_t sv_peer_read(uint32_t proc, void *to, uint64_t addr, size_t len)
{
	struct iovec here = {to, len}, there = {(void *)(uintptr_t)addr, len};
	struct pollfd p = {.events = POLLIN};
	ssize_t n;

	pthread_mutex_lock(&lock);
	if ((n = p.fd = open_peer(proc)) >= 0) {
		n = process_vm_readv(sv->proc[proc].pid, &here, 1, &there, 1, 0);
		if (n < 0)
			n = -errno;
		if (poll(&p, 1, 0)) /* it has ended, perhaps before the reading */
			n = -ESRCH;
	}
	pthread_mutex_unlock(&lock);
	return n;
}
