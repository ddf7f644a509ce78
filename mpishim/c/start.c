/*
 * Loading. libpinwheel.so does nothing in a process until that has called
 * MPI_Init and uses verbs; then it loads libpinwheel-go.so, from its own directory,
 * such that the program does not notice: see load.
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

#include "shim.h"

struct pw_shared pw = {.threshold = 16 << 10, .rank = -1, .size = -1}; /* 16 KiB until Go has read the settings */
int pw_disabled;

void pw_say(const char *format, ...)
{
	const char *log = getenv("PINWHEEL_LOG");
	char line[512] = "pinwheel: ";
	va_list args;
	int n;

	if (log && !strcmp(log, "off"))
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

static int is_given(const char *name)
{
	const char *v = getenv(name);

	return v && *v && strcmp(v, "n");
}

int pw_wanted(void) { return is_given("PINWHEEL_STATS") || is_given("PINWHEEL_RECORD"); }

static int is_named(const char *const *names)
{
	for (; *names; names++)
		if (!strcmp(program_invocation_short_name, *names))
			return 1;
	return 0;
}

/* Launchers start the ranks; they are no ranks, and a Go runtime would disturb
 * them. The first kind the user starts, and has preloaded by mistake; the second is started
 * by the first, or by a rank without launcher, and inherits the preload. */
static const char *const launchers[] = {"mpirun", "mpiexec", "orterun", "prterun", "srun", "mpiexec.hydra", NULL};
static const char *const daemons[] = {"orted",		  "prted",  "prte", "slurmstepd", "hydra_pmi_proxy",
				      "hydra_bstrap_proxy", NULL};

/* After fork there is one thread: no server, no helper. What the parent registered is the parent's. */
static void in_child(void)
{
	pw_disabled = 1;
	pw.mode = PW_PLAIN;
	pw.serving = 0;
}

__attribute__((constructor)) static void loaded(void)
{
	char source[32] = "";
	FILE *f;

	pw_disabled = is_yes(getenv("PINWHEEL_DISABLE"));
	if (is_named(daemons))
		pw_disabled = 1;
	if (is_named(launchers)) {
		pw_disabled = 1;
		pw_say("preloaded into the launcher %s, which has nothing to register; it is meant for the ranks (pinwheel run sees to that)",
		       program_invocation_short_name);
	}
	pw.ticks_are_ns = 1;
#ifdef __x86_64__
	f = pw_disabled ? NULL : fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "re");
	if (f) {
		if (fgets(source, sizeof source, f) && !strcmp(source, "tsc\n"))
			pw.ticks_are_ns = 0;
		fclose(f);
	}
#endif
}

__attribute__((destructor)) static void unloaded(void)
{
	if (pw.verbs_used && pw.rank < 0 && !pw_disabled)
		pw_say("verbs were used but no call of MPI was seen (is MPI linked statically?); nothing was managed");
}

static long futex_wait(uint32_t *word, uint32_t value, const struct timespec *timeout)
{
	return syscall(SYS_futex, word, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, value, timeout, NULL, 0);
}

/* libpinwheel-go.so beside this library. */
static void *open_go(void)
{
	char path[4096];
	Dl_info us;
	char *slash;
	void *h;

	if (!dladdr((void *)open_go, &us) || strlen(us.dli_fname) > sizeof path - 32)
		return NULL;
	strcpy(path, us.dli_fname);
	slash = strrchr(path, '/');
	strcpy(slash ? slash + 1 : path, "libpinwheel-go.so");
	h = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!h)
		pw_say("%s; going on without Pinwheel", dlerror());
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
	pw_bind_fn bind = NULL;
	int have_cpus = !sched_getaffinity(0, sizeof cpus, &cpus), have_files = !getrlimit(RLIMIT_NOFILE, &files);
	const struct timespec patience = {.tv_sec = 60}; /* an overloaded node, an emulated one */
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
	if (h && !(bind = (pw_bind_fn)(uintptr_t)dlsym(h, "pw_bind")))
		pw_say("libpinwheel-go.so is of another version; going on without Pinwheel");
	if (bind) {
		bind(&pw);
		while (!__atomic_load_n(&pw.started, __ATOMIC_ACQUIRE))
			if (futex_wait(&pw.started, 0, &patience) && errno == ETIMEDOUT) {
				pw_say("the helper library did not start within %d s; going on without Pinwheel",
				       (int)patience.tv_sec);
				pw_disabled = 1;
				break;
			}
	}
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

	if (!pw_disabled)
		pthread_once(&once, start_once);
}

void pw_stop(void)
{
	struct pw_thread *t = pw_self();

	__atomic_store_n(&pw.mode, PW_PLAIN, __ATOMIC_RELEASE);
	if (t && !pw_disabled)
		pw_ask(t, PW_ASK_STOP);
}
