/*
 * A program that watches what happens to its signals while it sends on the stand-in. The first argument says how it
 * takes them. It exits with 0 if nothing came but what it has sent to itself, and all of that.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "standin.h"

static int failures;
#define EXPECT(what, signal) expect(!!(what), #what, signal, __LINE__)

static void expect(int is_so, const char *what, int signal, int line)
{
	if (is_so)
		return;
	fprintf(stderr, "line %d: not so: %s (signal %d)\n", line, what, signal);
	failures++;
}

/* 32 and 33 are the C library's. */
static int is_usable(int s) { return s != SIGKILL && s != SIGSTOP && s != 32 && s != 33; }
#define EACH(s) for (int s = 1; s <= 64; s++) if (is_usable(s))

static __thread int is_ours; /* a thread of the program */
static volatile int seen[65], elsewhere[65];

static void count(int s)
{
	__atomic_fetch_add(&seen[s], 1, __ATOMIC_RELAXED);
	if (!is_ours)
		__atomic_fetch_add(&elsewhere[s], 1, __ATOMIC_RELAXED);
}

static void *map(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		abort();
	return p;
}

/* Sends fresh memory, and some of it again. */
static void load(int messages)
{
	const int bytes = 1 << 20;
	char *kept = map((size_t)bytes);

	for (int i = 0; i < messages; i++) {
		char *fresh = map((size_t)bytes);

		EXPECT(!MPI_Send(fresh, bytes, &ompi_mpi_byte, 0, 0, &ompi_mpi_comm_world), 0);
		EXPECT(!MPI_Send(kept, bytes, &ompi_mpi_byte, 0, 0, &ompi_mpi_comm_world), 0);
		munmap(fresh, (size_t)bytes);
	}
	munmap(kept, (size_t)bytes);
}

static void *loader(void *messages)
{
	is_ours = 1;
	load((int)(intptr_t)messages);
	return NULL;
}

/* Long enough for some collections of the Go side; GOGC makes them many. */
static void work(void)
{
	pthread_t t;

	pthread_create(&t, NULL, loader, (void *)(intptr_t)150);
	load(150);
	pthread_join(t, NULL);
}

static void handle(int s, void (*handler)(int), int flags)
{
	struct sigaction a = {.sa_handler = handler, .sa_flags = flags};

	EXPECT(!sigaction(s, &a, NULL), s);
}

static void block_all(sigset_t *all)
{
	sigfillset(all);
	pthread_sigmask(SIG_BLOCK, all, NULL);
}

/* Handlers for all of them count. */
static void count_all(void)
{
	EACH(s)
		handle(s, count, SA_RESTART);
	work();
	EACH(s)
		EXPECT(!seen[s], s);
	EACH(s)
		for (int i = 0; i < 20; i++) {
			int before = seen[s];

			kill(getpid(), s);
			while (seen[s] == before) /* it may be on its way to the other thread of the program */
				sched_yield();
		}
	work();
	EACH(s) {
		EXPECT(seen[s] == 20, s);
		EXPECT(!elsewhere[s], s);
	}
}

static void counts(void)
{
	EACH(s)
		handle(s, count, SA_RESTART);
	EXPECT(!MPI_Init(NULL, NULL), 0);
	count_all();
}

/* They are blocked in all threads of the program, and somebody waits for them. */
static void waits(void)
{
	sigset_t all;

	block_all(&all);
	EXPECT(!MPI_Init(NULL, NULL), 0);
	work();
	for (int round = 0; round < 20; round++)
		EACH(s) {
			struct timespec long_enough = {.tv_sec = 20};
			siginfo_t i;
			int got;

			kill(getpid(), s);
			got = sigtimedwait(&all, &i, &long_enough);
			EXPECT(got == s && i.si_pid == getpid(), s);
			if (got != s)
				return;
			if (s == SIGTERM)
				load(1);
		}
	work();
}

static void reads(void)
{
	sigset_t all;
	int fd;

	block_all(&all);
	fd = signalfd(-1, &all, SFD_NONBLOCK | SFD_CLOEXEC);
	EXPECT(!MPI_Init(NULL, NULL), 0);
	work();
	for (int round = 0; round < 20; round++)
		EACH(s) {
			struct signalfd_siginfo i = {0};

			kill(getpid(), s); /* pending when it returns, unless a thread has taken it */
			EXPECT(read(fd, &i, sizeof i) == sizeof i && (int)i.ssi_signo == s, s);
		}
	for (int round = 0; round < 20; round++) { /* as an event loop hears of its children */
		struct signalfd_siginfo i = {0};
		pid_t child = fork();

		if (!child)
			_exit(0);
		waitpid(child, NULL, 0);
		EXPECT(read(fd, &i, sizeof i) == sizeof i && i.ssi_signo == SIGCHLD && (pid_t)i.ssi_pid == child, SIGCHLD);
	}
	work();
}

static int is_same(const struct sigaction *a, const struct sigaction *b)
{
	return a->sa_handler == b->sa_handler && a->sa_flags == b->sa_flags && !memcmp(&a->sa_mask, &b->sa_mask, 8);
}

/* As the kernel has it, for the C library's own, too. */
struct kernel_sigaction {
	void *handler;
	unsigned long flags;
	void *restorer;
	uint64_t mask;
};

static void look(struct kernel_sigaction *all)
{
	for (int s = 1; s <= 64; s++)
		syscall(SYS_rt_sigaction, s, NULL, &all[s], 8);
}

/* What it has set before stays: handler, mask and each flag; and so does the stack for handlers. */
static void before(void)
{
	static const int flags[] = {0, SA_RESTART, SA_ONSTACK, SA_NODEFER, SA_RESTART | SA_ONSTACK};
	static struct kernel_sigaction was[65], is[65];
	stack_t none, now, mine = {.ss_sp = map(1 << 16), .ss_size = 1 << 16};
	sigset_t mask, mask_now;
	pthread_t t;

	pthread_create(&t, NULL, loader, 0); /* the C library has its handlers from now on */
	pthread_join(t, NULL);
	EACH(s)
		if (s % 7) /* the rest keeps what it has */
			handle(s, s % 5 ? count : s % 2 ? SIG_IGN : SIG_DFL, flags[s % 5]);
	sigaltstack(NULL, &none);
	EXPECT(none.ss_flags & SS_DISABLE, 0);
	sigaltstack(&mine, NULL);
	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	look(was);
	EXPECT(!MPI_Init(NULL, NULL), 0);
	work();
	look(is);
	for (int s = 1; s <= 64; s++)
		EXPECT(s == 32 || s == 33 || !memcmp(&was[s], &is[s], sizeof was[s]), s);
	sigaltstack(NULL, &now);
	EXPECT(now.ss_sp == mine.ss_sp && now.ss_size == mine.ss_size && now.ss_flags == mine.ss_flags, 0);
	pthread_sigmask(SIG_SETMASK, NULL, &mask_now);
	EXPECT(!memcmp(&mask, &mask_now, sizeof mask), 0);
}

static int stop_setting; /* atomic */
static void other(int s) { count(s); }

/* Sets handlers all the time; each must still be there when the next one is set. */
static void *set_handlers(void *unused)
{
	long turns = 0;

	(void)unused;
	is_ours = 1;
	EACH(s)
		handle(s, other, 0);
	for (; !__atomic_load_n(&stop_setting, __ATOMIC_RELAXED); turns++)
		EACH(s) {
			struct sigaction was, is = {.sa_handler = turns % 2 ? other : count, .sa_flags = turns % 2 ? 0 : SA_NODEFER};
			struct sigaction expected = {.sa_handler = turns % 2 ? count : other, .sa_flags = turns % 2 ? SA_NODEFER : 0};

			sigaction(s, &is, &was);
			was.sa_flags &= ~0x04000000; /* SA_RESTORER */
			if (!turns)
				continue;
			EXPECT(is_same(&was, &expected), s);
		}
	return (void *)(intptr_t)turns;
}

static void during(void)
{
	pthread_t t;
	void *turns;

	pthread_create(&t, NULL, set_handlers, NULL);
	EXPECT(!MPI_Init(NULL, NULL), 0);
	work();
	__atomic_store_n(&stop_setting, 1, __ATOMIC_RELAXED);
	pthread_join(t, &turns);
	EXPECT((intptr_t)turns > 1, 0);
}

static void after(void)
{
	EXPECT(!MPI_Init(NULL, NULL), 0);
	load(3);
	count_all();
}

/* A program that resets all handlers, as some do before they call exec. */
static void resets(void)
{
	EXPECT(!MPI_Init(NULL, NULL), 0);
	load(3);
	EACH(s)
		signal(s, s % 2 ? SIG_DFL : SIG_IGN);
	work();
	EACH(s) {
		struct sigaction now;

		sigaction(s, NULL, &now);
		EXPECT(now.sa_handler == (s % 2 ? SIG_DFL : SIG_IGN), s);
	}
}

/* A profiler: the timer signals whoever runs, if that does not block it. */
static void profiles(void)
{
	const struct itimerval often = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};

	handle(SIGPROF, count, SA_RESTART);
	setitimer(ITIMER_PROF, &often, NULL);
	EXPECT(!MPI_Init(NULL, NULL), 0);
	while (seen[SIGPROF] < 100)
		load(10);
	setitimer(ITIMER_PROF, &never, NULL);
	EXPECT(!elsewhere[SIGPROF], SIGPROF);
}

static uint64_t blocked_by(const char *task)
{
	char path[64], line[256];
	uint64_t blocked = 0;
	FILE *f;

	snprintf(path, sizeof path, "/proc/self/task/%.20s/status", task);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof line, f))
		sscanf(line, "SigBlk: %lx", &blocked);
	if (f)
		fclose(f);
	return f ? blocked : UINT64_MAX; /* it has ended */
}

static int others; /* how many threads that are not the program's were looked at */

/* All threads but this one block all but what can't be blocked and the C library's. The kernel calls threads of its own
 * "iou-". */
static void look_at_threads(void)
{
	const uint64_t bit = 1, all = ~(bit << (SIGKILL - 1) | bit << (SIGSTOP - 1) | bit << 31 | bit << 32);
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *e;

	while (tasks && (e = readdir(tasks))) {
		uint64_t blocked;

		if (e->d_name[0] == '.' || atoi(e->d_name) == getpid())
			continue;
		blocked = blocked_by(e->d_name) & all;
		if (blocked == all) {
			others++;
			continue;
		}
		/* A thread that is only now being created: its C library or Go's is not through with it. */
		for (int i = 0; i < 10000 && blocked != all; i++) {
			sched_yield();
			blocked = blocked_by(e->d_name) & all;
		}
		fprintf(stderr, blocked == all ? "" : "thread %s: blocks %lx, want %lx\n", e->d_name, blocked, all);
		failures += blocked != all;
	}
	if (tasks)
		closedir(tasks);
}

static void masks(void)
{
	EXPECT(!MPI_Init(NULL, NULL), 0);
	for (int i = 0; i < 60; i++) {
		load(5);
		look_at_threads();
	}
	EXPECT(others > 100, 0);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} modes[] = {{"counts", counts}, {"waits", waits}, {"reads", reads}, {"before", before}, {"during", during},
		     {"after", after}, {"resets", resets}, {"profiles", profiles}, {"masks", masks}};

	is_ours = 1;
	for (unsigned i = 0; i < sizeof modes / sizeof *modes; i++) {
		if (argc < 2 || strcmp(argv[1], modes[i].name))
			continue;
		modes[i].run();
		EXPECT(!MPI_Finalize(), 0);
		if (!strcmp(argv[1], "masks"))
			look_at_threads();
		return failures != 0;
	}
	return 2;
}
