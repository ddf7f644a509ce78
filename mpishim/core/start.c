/*
 * Starting the Go side. The library does nothing in a process that has not called
 * MPI_Init and used verbs, or called pinwheel_init. Then it loads libpinwheel-go.so from its
 * own directory, in such a way that the program does not notice; see load.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core.h"

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

/* Loads libpinwheel-go.so from the directory of this library. A process has one Go runtime at most, so if
 * the library is loaded already, that one serves. */
static void *open_go(void)
{
	char path[4096];
	Dl_info us;
	char *slash;
	void *h = dlopen(go_library, RTLD_NOW | RTLD_NOLOAD);

	if (h)
		return h;
	if (!dladdr((void *)open_go, &us) || strlen(us.dli_fname) > sizeof path - 32)
		return NULL;
	strcpy(path, us.dli_fname);
	slash = strrchr(path, '/');
	strcpy(slash ? slash + 1 : path, go_library);
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

#define TIMER_SLACK_NS 1000000 /* 50 us is usual (prctl(2)) */

/* What the start of a Go runtime changes in a process and in the thread that loads it. */
struct surroundings {
	struct sigaction handlers[NSIG];
	sigset_t blocked;
	struct rlimit files;
	cpu_set_t cpus;
	int has_files, has_cpus;
	int slack_ns; /* of timers; -1: not known */
};

static void save(struct surroundings *s)
{
	for (int signal = 1; signal < NSIG; signal++)
		if (sigaction(signal, NULL, &s->handlers[signal]))
			s->handlers[signal].sa_flags = -1;
	pthread_sigmask(SIG_SETMASK, NULL, &s->blocked);
	s->has_files = !getrlimit(RLIMIT_NOFILE, &s->files);
	s->has_cpus = !sched_getaffinity(0, sizeof s->cpus, &s->cpus);
	s->slack_ns = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
}

static void restore(const struct surroundings *s)
{
	struct sigaction now;

	if (s->has_cpus)
		sched_setaffinity(0, sizeof s->cpus, &s->cpus);
	for (int signal = 1; signal < NSIG; signal++)
		if (s->handlers[signal].sa_flags != -1 && !sigaction(signal, NULL, &now) &&
		    now.sa_handler != s->handlers[signal].sa_handler)
			sigaction(signal, &s->handlers[signal], NULL);
	if (s->has_files)
		setrlimit(RLIMIT_NOFILE, &s->files);
	pthread_sigmask(SIG_SETMASK, &s->blocked, NULL);
	if (s->slack_ns > 0)
		prctl(PR_SET_TIMERSLACK, s->slack_ns, 0, 0, 0);
}

/* Blocks every signal but faults of the thread itself. Threads inherit this. */
static void block_signals(void)
{
	static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
	sigset_t blocked;

	sigfillset(&blocked);
	for (unsigned i = 0; i < sizeof faults / sizeof *faults; i++)
		sigdelset(&blocked, faults[i]);
	pthread_sigmask(SIG_SETMASK, &blocked, NULL);
}

/*
 * Loads Go so that the program does not notice:
 *
 *   - Go's threads start with all signals blocked but their own faults, so the
 *     program's signals reach the program's threads. They start with the affinity
 *     of choose_cpus.
 *   - Their timers may be late by TIMER_SLACK_NS. The monitor of the runtime sleeps for 20 us at a time while
 *     anything goes on, and takes a millisecond of processor time at every start if it does so exactly. The
 *     helper sets its own.
 *   - The signal handlers that the runtime installs are removed again. Faults stay the
 *     program's, and Open MPI still prints its backtrace. A nil pointer in our Go code
 *     is then a fault of the process, as it is in C.
 *   - The limit of open files, which Go raises, is put back.
 */
static void load(void)
{
	struct surroundings before;
	void *library;

	save(&before);
	block_signals();
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
	if (t && !pw_is_disabled())
		pw_ask(t, PW_ASK_STOP);
}
