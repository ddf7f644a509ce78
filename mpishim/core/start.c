/*
 * Starting the Go side. The library does nothing in a process that has not called
 * MPI_Init and used verbs, or called pinwheel_init. Then it loads libpinwheel-go.so from its
 * own directory, in such a way that the program does not notice; see load and docs/host-process.md.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "start.h"
#include "thread.h"

/* A forked child has one thread, so neither server nor helper. Registrations stay the parent's. */
static void in_child(void)
{
	pw_disable();
	__atomic_store_n(&pw.mode, PW_PLAIN, __ATOMIC_RELEASE);
	__atomic_store_n(&pw.serving, 0, __ATOMIC_RELEASE);
}

static long futex_wait(uint32_t *word, uint32_t value, const struct timespec *timeout)
{
	return syscall(SYS_futex, word, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, value, timeout, NULL, 0);
}

static const char go_library[] = "libpinwheel-go.so"; /* its soname, too */

/* Loads libpinwheel-go.so from the directory of this library, or from pinwheel/ in it, where distributions have what
 * nobody links. A process has one Go runtime at most, so if the library is loaded already, that one serves. */
static void *open_go(void)
{
	char path[4096];
	Dl_info us;
	char *slash, *name;
	void *h = dlopen(go_library, RTLD_NOW | RTLD_NOLOAD);

	if (h)
		return h;
	if (!dladdr((void *)open_go, &us) || strlen(us.dli_fname) > sizeof path - 32)
		return NULL;
	strcpy(path, us.dli_fname);
	slash = strrchr(path, '/');
	name = slash ? slash + 1 : path;
	strcat(strcpy(name, "pinwheel/"), go_library);
	if (access(path, F_OK))
		strcpy(name, go_library);
	h = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!h)
		pw_warn("%s; going on without Pinwheel", dlerror());
	return h;
}

/*
 * Chooses the processors for Go's threads, which inherit them from this one: the processors of
 * the job without the one that this rank is bound to. So no thread of the runtime
 * runs on the rank's core.
 */
static void choose_cpus(const cpu_set_t *own)
{
	cpu_set_t wide, rest;

	memset(&wide, 0xff, sizeof wide);
	if (CPU_COUNT(own) > 1 || sched_setaffinity(0, sizeof wide, &wide) || sched_getaffinity(0, sizeof wide, &wide))
		return;
	CPU_XOR(&rest, &wide, own);
	if (CPU_COUNT(&rest))
		sched_setaffinity(0, sizeof rest, &rest);
}

static pw_bind_fn bind_to_go; /* NULL if Go is not loaded */

/* Starts a server and waits until it is ready or has given up. */
static void bind_and_wait(void)
{
	const struct timespec timeout = {.tv_sec = 60}; /* an overloaded node, an emulated one */

	if (bind_to_go(&pw, PW_LAYOUT)) {
		bind_to_go = NULL;
		pw_warn("%s is of another version; going on without Pinwheel", go_library);
		return;
	}
	while (!__atomic_load_n(&pw.started, __ATOMIC_ACQUIRE))
		if (futex_wait(&pw.started, 0, &timeout) && errno == ETIMEDOUT) {
			pw_warn("the helper library did not start within %d s; going on without Pinwheel", (int)timeout.tv_sec);
			pw_disable();
			return;
		}
}

/* More than the Go side takes of the address space in its first seconds: most of it is reserved and never used. */
#define ADDRESSES_NEEDED ((size_t)3 << 30)

/* A Go runtime that can't have what it needs aborts the process, so this tries first. What counts is ulimit -v, and
 * after mlockall(2) with MCL_FUTURE ulimit -l, too: reserved memory is locked memory then. */
static int has_addresses(void)
{
	void *p = mmap(NULL, ADDRESSES_NEEDED, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p != MAP_FAILED && !munmap(p, ADDRESSES_NEEDED);
}

#define THREADS_NEEDED 8 /* those of the runtime, the server, the helper, one that opens the watch */

static void *wait_for_zero(void *word)
{
	while (__atomic_load_n((uint32_t *)word, __ATOMIC_ACQUIRE))
		futex_wait(word, 1, NULL);
	return NULL;
}

/* Likewise: as many threads at one time as the Go side soon has. Call it with signals blocked. */
static int has_threads(void)
{
	pthread_t thread[THREADS_NEEDED];
	pthread_attr_t small;
	uint32_t wait = 1;
	int n = 0;

	if (pthread_attr_init(&small))
		return 0;
	pthread_attr_setstacksize(&small, 64 << 10); /* or else the usual size */
	while (n < THREADS_NEEDED && !pthread_create(&thread[n], &small, wait_for_zero, &wait))
		n++;
	__atomic_store_n(&wait, 0, __ATOMIC_RELEASE);
	syscall(SYS_futex, &wait, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, THREADS_NEEDED, NULL, NULL, 0);
	for (int i = 0; i < n; i++)
		pthread_join(thread[i], NULL);
	pthread_attr_destroy(&small);
	return n == THREADS_NEEDED;
}

#define TIMER_SLACK_NS 1000000 /* 50 us is usual (prctl(2)) */

/* What the thread that loads the Go side changes of itself for a while, so that Go's threads inherit it. */
struct surroundings {
	cpu_set_t cpus;
	int has_cpus;
	int slack_ns; /* of timers; -1: not known */
};

static void save(struct surroundings *s)
{
	s->has_cpus = !sched_getaffinity(0, sizeof s->cpus, &s->cpus);
	s->slack_ns = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
}

static void restore(const struct surroundings *s)
{
	if (s->has_cpus)
		sched_setaffinity(0, sizeof s->cpus, &s->cpus);
	if (s->slack_ns > 0)
		prctl(PR_SET_TIMERSLACK, s->slack_ns, 0, 0, 0);
}

/*
 * Loads Go so that the program does not notice. What concerns signals, threads that can't be created and the limit of
 * open files is in ../quiet, which is part of that library. Here:
 *
 *   - Nothing is loaded that would soon lack memory or threads, and then abort the program.
 *   - Go's threads start with the affinity of choose_cpus.
 *   - Their timers may be late by TIMER_SLACK_NS. The monitor of the runtime sleeps for 20 us at a time while
 *     anything goes on, and takes a millisecond of processor time at every start if it does so exactly. The
 *     helper sets its own.
 */
static void load(void)
{
	struct surroundings before;
	sigset_t all, blocked;
	void *library;
	int threads;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &blocked);
	threads = has_threads();
	pthread_sigmask(SIG_SETMASK, &blocked, NULL);
	if (!threads || !has_addresses()) {
		pw_warn("%s; going on without Pinwheel", threads ?
			"less than 3 GiB of address space are left (ulimit -v, or ulimit -l after mlockall)" :
			"fewer than 8 threads can be created (ulimit -u, or the pids limit of the container)");
		return;
	}
	save(&before);
	if (before.slack_ns > 0)
		prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS, 0, 0, 0);
	if (before.has_cpus)
		choose_cpus(&before.cpus);
	library = open_go();
	if (library && !(bind_to_go = (pw_bind_fn)(uintptr_t)dlsym(library, "pw_bind")))
		pw_warn("%s is of another version; going on without Pinwheel", go_library);
	if (bind_to_go)
		bind_and_wait();
	restore(&before);
}

static void start_once(void)
{
	if (pthread_atfork(NULL, NULL, in_child))
		return;
	load();
}

void pw_start(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	if (pw_is_disabled())
		return;
	pthread_once(&once, start_once);
	/* Only the API ends its server (PW_ASK_END), and starts it under a lock. */
	if (!__atomic_load_n(&pw.started, __ATOMIC_ACQUIRE) && bind_to_go)
		bind_and_wait();
}

void pw_stop(void)
{
	struct pw_thread *t = pw_self();

	__atomic_store_n(&pw.mode, PW_PLAIN, __ATOMIC_RELEASE);
	if (!t || pw_is_disabled())
		return;
	pw_await_abandoned(t); /* else nothing can be asked, and what is registered stays so */
	pw_ask(t, PW_ASK_STOP);
}
