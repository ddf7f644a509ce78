/*
 * Loading. The library does nothing in a process until that has called MPI_Init
 * and uses verbs, or pinwheel_init; then it loads libpinwheel-go.so, from its own
 * directory, such that the program does not notice: see load.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core.h"

struct pw_shared pw = {.threshold = 16 << 10, .rank = -1, .size = -1}; /* 16 KiB until Go has read the settings */
int pw_disabled;

void pw_warn(const char *format, ...)
{
	const char *log = getenv("PINWHEEL_LOG");
	char line[512] = "pinwheel: ";
	va_list args;
	int n;

	if (log && !strcasecmp(log, "off")) /* case counts nowhere */
		return;
	va_start(args, format);
	n = vsnprintf(line + 10, sizeof line - 12, format, args) + 10;
	va_end(args);
	if (n > (int)sizeof line - 2)
		n = sizeof line - 2;
	line[n++] = '\n';
	if (write(STDERR_FILENO, line, (size_t)n) < 0)
		return; /* nobody to tell */
}

/* The switches that must be known before Go is there. Everything else the Go side reads. */
static int is_yes(const char *v)
{
	return v && (!strcasecmp(v, "y") || !strcasecmp(v, "yes") || !strcmp(v, "1") || !strcasecmp(v, "on") ||
		     !strcasecmp(v, "true"));
}

/* After fork there is one thread: no server, no helper. What the parent registered is the parent's. */
static void in_child(void)
{
	pw_disable();
	__atomic_store_n(&pw.mode, PW_PLAIN, __ATOMIC_RELEASE);
	__atomic_store_n(&pw.serving, 0, __ATOMIC_RELEASE);
}

void pw_prepare(void)
{
	char source[32] = "";
	FILE *f;

	if (is_yes(getenv("PINWHEEL_DISABLE")))
		pw_disable();
	pw.ticks_are_ns = 1;
#ifdef __x86_64__
	f = pw_is_disabled() ? NULL : fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "re");
	if (f) {
		if (fgets(source, sizeof source, f) && !strcmp(source, "tsc\n"))
			pw.ticks_are_ns = 0;
		fclose(f);
	}
#endif
}

static long futex_wait(uint32_t *word, uint32_t value, const struct timespec *timeout)
{
	return syscall(SYS_futex, word, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, value, timeout, NULL, 0);
}

static const char go_library[] = "libpinwheel-go.so"; /* its soname, too */

/* libpinwheel-go.so beside this library; or the one that is there already, because a
 * process has one Go runtime at most. */
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
 * The processors for the threads of Go, which they inherit: those of the job, but
 * not the one that this rank is bound to. The runtime's own threads then never
 * run on the rank's core.
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

static pw_bind_fn bind_to_go; /* NULL: not loaded, or not to be had */

/* Starts a server, and returns when that has made up its mind. */
static void bind_and_wait(void)
{
	const struct timespec patience = {.tv_sec = 60}; /* an overloaded node, an emulated one */

	if (bind_to_go(&pw, PW_LAYOUT)) {
		bind_to_go = NULL;
		pw_warn("%s is of another version; going on without Pinwheel", go_library);
		return;
	}
	while (!__atomic_load_n(&pw.started, __ATOMIC_ACQUIRE))
		if (futex_wait(&pw.started, 0, &patience) && errno == ETIMEDOUT) {
			pw_warn("the helper library did not start within %d s; going on without Pinwheel", (int)patience.tv_sec);
			pw_disable();
			return;
		}
}

/*
 * Loads Go so that the program does not notice:
 *
 *   - Its threads are born with every signal blocked that is not a fault of their
 *     own, so the program's signals reach the program's threads; and with the
 *     affinity above.
 *   - The handlers that the runtime installs are taken away again: faults stay
 *     the program's, and Open MPI's backtrace with them. A nil pointer in our Go code is
 *     then a fault of the process, as it is in C.
 *   - The limit of open files, which Go raises, is put back.
 */
static void load(void)
{
	struct sigaction before[NSIG], now;
	sigset_t blocked, mask;
	struct rlimit files;
	cpu_set_t cpus;
	int have_cpus = !sched_getaffinity(0, sizeof cpus, &cpus), have_files = !getrlimit(RLIMIT_NOFILE, &files);
	void *h;

	for (int s = 1; s < NSIG; s++)
		if (sigaction(s, NULL, &before[s]))
			before[s].sa_flags = -1;
	sigfillset(&blocked);
	for (unsigned i = 0; i < 5; i++)
		sigdelset(&blocked, (const int[]){SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP}[i]);
	pthread_sigmask(SIG_SETMASK, &blocked, &mask);
	if (have_cpus)
		choose_cpus(&cpus);
	h = open_go();
	if (h && !(bind_to_go = (pw_bind_fn)(uintptr_t)dlsym(h, "pw_bind")))
		pw_warn("%s is of another version; going on without Pinwheel", go_library);
	if (bind_to_go)
		bind_and_wait();
	if (have_cpus)
		sched_setaffinity(0, sizeof cpus, &cpus);
	for (int s = 1; s < NSIG; s++)
		if (before[s].sa_flags != -1 && !sigaction(s, NULL, &now) && now.sa_handler != before[s].sa_handler)
			sigaction(s, &before[s], NULL);
	if (have_files)
		setrlimit(RLIMIT_NOFILE, &files);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
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
