/*
 * The thread that every process has: while it lives, its process does (struct sv_proc, alive). It repeats the
 * requests whose time to wait is over, and hears of the end of other processes. Asleep if there is neither.
 */
#include "sv.h"
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>

#define WAKE UINT32_MAX
static int epoll_fd = -1, wake_fd = -1;

static void ended(uint32_t proc, int pidfd)
{
	epoll_ctl(epoll_fd, EPOLL_CTL_DEL, pidfd, NULL);
	sv_peer_drop(proc);
	sv_rings_drop(proc);
	sv_bury_dead();
}

static void *run(void *started)
{
	struct epoll_event e;
	eventfd_t v;

	sv_lock(&sv->proc[sv_me].alive);
	pthread_barrier_wait(started);
	for (;;) {
		uint64_t at = sv_retry_waiting(), ns;
		struct timespec now, *left = NULL, t;

		if (at != UINT64_MAX) {
			clock_gettime(CLOCK_MONOTONIC, &now);
			ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
			ns = at > ns ? at - ns : 0;
			t = (struct timespec){(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
			left = &t;
		}
		if (syscall(SYS_epoll_pwait2, epoll_fd, &e, 1, left, NULL, 0) != 1)
			continue;
		if ((uint32_t)e.data.u64 == WAKE)
			eventfd_read(wake_fd, &v);
		else
			ended((uint32_t)e.data.u64, (int)(e.data.u64 >> 32));
	}
	return NULL;
}

int sv_thread_start(void)
{
	struct epoll_event e = {.events = EPOLLIN, .data.u64 = WAKE};
	pthread_barrier_t started;
	sigset_t all, old;
	pthread_attr_t a;
	pthread_t t;
	int err;

	if (epoll_fd >= 0) { /* of the parent, before a fork */
		close(epoll_fd);
		close(wake_fd);
	}
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (epoll_fd < 0 || wake_fd < 0 || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, wake_fd, &e))
		return errno;
	pthread_barrier_init(&started, NULL, 2);
	pthread_attr_init(&a);
	pthread_attr_setdetachstate(&a, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&t, &a, run, &started);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&a);
	if (!err)
		pthread_barrier_wait(&started);
	pthread_barrier_destroy(&started);
	return err;
}

void sv_thread_wake(void) { eventfd_write(wake_fd, 1); }

void sv_thread_watch(uint32_t proc, int pidfd)
{
	struct epoll_event e = {.events = EPOLLIN, .data.u64 = (uint64_t)(uint32_t)pidfd << 32 | proc};

	epoll_ctl(epoll_fd, EPOLL_CTL_ADD, pidfd, &e);
}
