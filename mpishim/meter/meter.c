/*
 * libpinwheel-meter.so notes how much processor time a rank of an MPI job takes: before
 * MPI_Init returns, from then until MPI_Finalize is entered, and after that. It is the same
 * library with Pinwheel, with the transport's registration cache, and with neither. It must
 * be preloaded before libpinwheel.so, so that its start and end are outside of Pinwheel's.
 *
 * LIBPINWHEEL_METER names a directory. A rank makes the file meter-HOST-PID.json there when
 * MPI_Init returns, so that whoever samples its memory from outside finds it. At its end it
 * writes its readings into the file. Between MPI_Init and MPI_Finalize the meter does nothing.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "symbol.h"

#define EXPORT __attribute__((visibility("default")))

struct reading {
	long long wall_ns;	      /* CLOCK_MONOTONIC */
	long long cpu_ns;	      /* of all threads since the process was forked */
	long long user_us, system_us; /* the kernel's division of that */
};

static char path[PATH_MAX]; /* empty: no rank, or not asked for */
static pid_t rank;	    /* a child that it forks is another process */
static struct reading load, init, finalize, end;
static __thread int depth; /* the Fortran form of a call may call the C form */

static long long clock_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static struct reading read_now(void)
{
	struct rusage u;
	struct reading r;

	getrusage(RUSAGE_SELF, &u);
	r.user_us = u.ru_utime.tv_sec * 1000000LL + u.ru_utime.tv_usec;
	r.system_us = u.ru_stime.tv_sec * 1000000LL + u.ru_stime.tv_usec;
	r.cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	r.wall_ns = clock_ns(CLOCK_MONOTONIC);
	return r;
}

/* Makes the file, and reads last: what the meter itself does belongs to the start. */
static void began(void)
{
	const char *dir = getenv("LIBPINWHEEL_METER");
	struct utsname host;
	int fd;

	if (rank || !dir || !*dir || uname(&host))
		return;
	rank = getpid();
	if (snprintf(path, sizeof path, "%s/meter-%s-%d.json", dir, host.nodename, (int)rank) >= (int)sizeof path)
		path[0] = 0;
	fd = path[0] ? open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644) : -1;
	if (fd >= 0)
		close(fd);
	else
		path[0] = 0;
	init = read_now();
}

static void ends(void)
{
	if (!finalize.wall_ns)
		finalize = read_now();
}

static int print(char *at, size_t room, const char *name, const struct reading *r)
{
	return snprintf(at, room, "\"%s\":{\"wall_ns\":%lld,\"cpu_ns\":%lld,\"user_us\":%lld,\"system_us\":%lld},", name,
			r->wall_ns, r->cpu_ns, r->user_us, r->system_us);
}

/* Writes all readings. A program may leave by _exit(2) after MPI_Finalize, so they are written there too. */
static void save(void)
{
	char text[1024] = "{";
	int n = 1, fd;

	if (!path[0] || getpid() != rank)
		return;
	end = read_now();
	n += print(text + n, sizeof text - (size_t)n, "load", &load);
	n += print(text + n, sizeof text - (size_t)n, "init", &init);
	if (finalize.wall_ns)
		n += print(text + n, sizeof text - (size_t)n, "finalize", &finalize);
	n += print(text + n, sizeof text - (size_t)n, "end", &end);
	n += snprintf(text + n, sizeof text - (size_t)n, "\"pid\":%d}\n", (int)rank);
	fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	if (fd < 0)
		return;
	if (write(fd, text, (size_t)n) != n)
		unlink(path); /* half a reading is none */
	close(fd);
}

__attribute__((constructor)) static void loaded(void) { load = read_now(); }

__attribute__((destructor)) static void unloaded(void) { save(); }

typedef int (*call)(void *, void *, void *, void *);

#define NO_MPI 17 /* any error will do: MPI_ERR_INTERN of MPICH */

enum language { C, FORTRAN };

/* Fortran passes the error code by reference, and the value that its calls return means nothing. */
static int begin(const char *symbol, enum language language, void *a, void *b, void *c, void *d)
{
	call real = (call)pw_symbol(symbol);
	int rc;

	if (!real)
		return NO_MPI;
	depth++;
	rc = real(a, b, c, d);
	if (!--depth && (language == FORTRAN || !rc))
		began();
	return rc;
}

static int finish(const char *symbol, void *a)
{
	call real = (call)pw_symbol(symbol);
	int rc;

	ends();
	rc = real ? real(a, NULL, NULL, NULL) : NO_MPI;
	save();
	return rc;
}

#define BEGINS(symbol, language) \
	EXPORT int symbol(void *a, void *b, void *c, void *d); \
	EXPORT int symbol(void *a, void *b, void *c, void *d) { return begin(#symbol, language, a, b, c, d); }

#define ENDS(symbol) \
	EXPORT int symbol(void *a); \
	EXPORT int symbol(void *a) { return finish(#symbol, a); }

BEGINS(MPI_Init, C)
BEGINS(MPI_Init_thread, C)
BEGINS(PMPI_Init, C) /* what a tool calls that is part of the program and has MPI_Init */
BEGINS(PMPI_Init_thread, C)
BEGINS(mpi_init_, FORTRAN)
BEGINS(mpi_init_f08_, FORTRAN)
BEGINS(mpi_init_thread_, FORTRAN)
BEGINS(mpi_init_thread_f08_, FORTRAN)
ENDS(MPI_Finalize)
ENDS(PMPI_Finalize)
ENDS(mpi_finalize_)
ENDS(mpi_finalize_f08_)
