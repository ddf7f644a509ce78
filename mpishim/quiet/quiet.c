/*
 * The names that the Go runtime's C half calls are defined here once more. The linker of this library takes ours, and
 * nobody outside sees them.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <time.h>

#include "quiet.h"
#include "runtime.h"

#define HIDDEN __attribute__((visibility("hidden")))

extern const ElfW(Ehdr) __ehdr_start HIDDEN;

/* In a program, its tests for example, the runtime is the process's own. */
static int is_library(void)
{
	return getauxval(AT_PHDR) != (uintptr_t)&__ehdr_start + __ehdr_start.e_phoff;
}

static int reached;

int pw_quiet_reached(void) { return reached; }

/* Where threads of the program enter Go, one of them may write to a socket there that nobody reads any more, and Go's
 * handler alone knows whether the program or Go did so. Such a library defines it. */
__attribute__((weak)) HIDDEN extern const int pw_quiet_handles_sigpipe;

static int is_kept(int signal) { return signal == SIGPIPE && &pw_quiet_handles_sigpipe; }

/* What the names would have meant. They are looked for once, before Go runs: to look takes the lock of the dynamic
 * linker, and a thread that holds it may wait for us. */
static int (*next_sigaction)(int, const struct sigaction *, struct sigaction *);
static int (*next_create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

HIDDEN int sigaction(int signal, const struct sigaction *action, struct sigaction *old)
{
	if (!next_sigaction)
		return errno = ENOSYS, -1;
	return next_sigaction(signal, is_library() && !is_kept(signal) ? NULL : action, old);
}

#define AGAIN_MS 100

/* The runtime aborts the process where a thread can't be created. It rather waits: whoever asks it meanwhile goes on
 * without it. Only the thread that it starts with can't wait, and core/start.c has tried before. */
HIDDEN int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *arg)
{
	static int started; /* atomic */
	const struct timespec pause = {.tv_nsec = AGAIN_MS * 1000000};
	int error = next_create ? next_create(thread, attr, run, arg) : ENOSYS;

	while (error == EAGAIN && is_library() && __atomic_load_n(&started, __ATOMIC_RELAXED)) {
		nanosleep(&pause, NULL);
		error = next_create(thread, attr, run, arg);
	}
	if (!error)
		__atomic_store_n(&started, 1, __ATOMIC_RELAXED);
	return error;
}

static sigset_t blocked;    /* of the thread that loads the library, while it does so */
static struct rlimit files; /* rlim_max is 0: not known */

/* Before the runtime starts, which does so in a constructor without a priority. Its threads inherit what is blocked. */
__attribute__((constructor(101))) static void before_go(void)
{
	sigset_t all;

	*(void **)&next_sigaction = dlsym(RTLD_DEFAULT, "sigaction");
	*(void **)&next_create = dlsym(RTLD_DEFAULT, "pthread_create");
	if (!is_library())
		return;
	reached = !pw_quiet_change_runtime();
	getrlimit(RLIMIT_NOFILE, &files);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &blocked);
}

/* After it: what the linker got later runs later. */
__attribute__((constructor)) static void after_go(void)
{
	if (is_library())
		pthread_sigmask(SIG_SETMASK, &blocked, NULL);
}

void pw_quiet_put_back_limit(void)
{
	if (files.rlim_max)
		setrlimit(RLIMIT_NOFILE, &files);
}
