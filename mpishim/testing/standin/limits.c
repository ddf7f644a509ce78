/*
 * A program with little room, on the stand-in: the argument says of what. It exits with 0 if all its messages went.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "standin.h"

static int failures;
#define EXPECT(what) expect(!!(what), #what, __LINE__)

static void expect(int is_so, const char *what, int line)
{
	if (is_so)
		return;
	fprintf(stderr, "line %d: not so: %s (%s)\n", line, what, strerror(errno));
	failures++;
}

static void send_fresh(int messages)
{
	const int bytes = 256 << 10;

	for (int i = 0; i < messages; i++) {
		char *p = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		EXPECT(p != MAP_FAILED);
		for (int k = 0; k < 3; k++)
			EXPECT(!MPI_Send(p, bytes, &ompi_mpi_byte, 0, 0, &ompi_mpi_comm_world));
		munmap(p, (size_t)bytes);
	}
}

static long status_of(const char *name)
{
	FILE *f = fopen("/proc/self/status", "r");
	size_t n = strlen(name);
	char line[256];
	long value = -1;

	while (f && fgets(line, sizeof line, f))
		if (!strncmp(line, name, n))
			value = atol(line + n);
	if (f)
		fclose(f);
	return value;
}

static void limit(int which, rlim_t most)
{
	const struct rlimit l = {most, most};

	EXPECT(!setrlimit(which, &l));
}

/* Nobody else is this user, whose processes and locked memory have limits; not even another run of these tests. */
static void be_nobody(void)
{
	const uid_t user = 1000000 + (uid_t)getpid();

	EXPECT(!setresgid(user, user, user));
	EXPECT(!setresuid(user, user, user));
}

static void run(void)
{
	EXPECT(!MPI_Init(NULL, NULL));
	send_fresh(200);
}

static void addresses(void)
{
	limit(RLIMIT_AS, (rlim_t)800 << 20);
	run();
}

static void locked(void)
{
	struct rlimit l;

	EXPECT(!getrlimit(RLIMIT_MEMLOCK, &l));
	if (l.rlim_max > (rlim_t)256 << 20)
		limit(RLIMIT_MEMLOCK, (rlim_t)256 << 20);
	be_nobody();
	EXPECT(!mlockall(MCL_FUTURE));
	run();
}

/* As the last one, by who may lock any number of pages. */
static void locks(void)
{
	EXPECT(!mlockall(MCL_FUTURE));
	run();
}

static void threads(void)
{
	limit(RLIMIT_NPROC, 4);
	be_nobody();
	run();
}

/* Enough to begin with, and not one more for a while. If the Go side wants one then, what is registered stays so until
 * it has it. */
static void threads_later(void)
{
	struct rlimit before, none;

	EXPECT(!MPI_Init(NULL, NULL));
	be_nobody(); /* each thread of the process, which the C library signals for that */
	send_fresh(1);
	EXPECT(!getrlimit(RLIMIT_NPROC, &before));
	none = before;
	none.rlim_cur = 1;
	EXPECT(!setrlimit(RLIMIT_NPROC, &none));
	send_fresh(200);
	EXPECT(!setrlimit(RLIMIT_NPROC, &before));
}

static void pinned_later(void)
{
	run();
	limit(RLIMIT_MEMLOCK, (rlim_t)1 << 20);
	send_fresh(200);
}

/* It may open as many files as before, and its handles below that are its own. */
static void fds(void)
{
	const struct rlimit few = {100, 4096};
	struct rlimit now;

	EXPECT(!setrlimit(RLIMIT_NOFILE, &few));
	run();
	EXPECT(!getrlimit(RLIMIT_NOFILE, &now));
	EXPECT(now.rlim_cur == few.rlim_cur && now.rlim_max == few.rlim_max);
}

/* Nobody reads what is said. The report comes at the end. */
static void nobody_reads(void)
{
	int p[2];

	EXPECT(!pipe(p) && dup2(p[1], STDERR_FILENO) == STDERR_FILENO && !close(p[0]) && !close(p[1]));
	run();
}

/* Every thread of the process takes part. */
static void set_user(void)
{
	run();
	be_nobody();
	send_fresh(100);
}

static void *large_stack(void *unused)
{
	(void)unused;
	send_fresh(20);
	return NULL;
}

/* What ulimit -s says is the size of each new stack. */
static void stacks(void)
{
	pthread_attr_t a;
	pthread_t t;

	pthread_attr_init(&a);
	pthread_attr_setstacksize(&a, (size_t)1 << 30);
	pthread_setattr_default_np(&a);
	run();
	EXPECT(!pthread_create(&t, NULL, large_stack, NULL) && !pthread_join(t, NULL));
}

static void size(void)
{
	long before_kib, before_threads;

	before_kib = status_of("VmSize:"), before_threads = status_of("Threads:");
	EXPECT(!MPI_Init(NULL, NULL));
	send_fresh(500);
	printf("%ld KiB, %ld threads\n", status_of("VmSize:") - before_kib, status_of("Threads:") - before_threads);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} modes[] = {{"addresses", addresses}, {"locked", locked}, {"locks", locks}, {"threads", threads},
		     {"threads-later", threads_later},
		     {"fds", fds}, {"pipe", nobody_reads}, {"setuid", set_user}, {"stacks", stacks}, {"size", size},
		     {"pinned-later", pinned_later}};

	for (unsigned i = 0; i < sizeof modes / sizeof *modes; i++) {
		if (argc < 2 || strcmp(argv[1], modes[i].name))
			continue;
		modes[i].run();
		EXPECT(!MPI_Finalize());
		return failures != 0;
	}
	return 2;
}
