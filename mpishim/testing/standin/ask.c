/*
 * What misses cost beside registrations, in microseconds: a question to the server, pinwheel_try_acquire of memory that
 * is not registered, and a first use, pinwheel_acquire of memory that was never used before. First on the machine as it
 * is, then with a process on every processor that never sleeps, as ranks that poll.
 *
 *   ask [QUESTIONS]
 */
#define _GNU_SOURCE
#include <pinwheel.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "timing.h"

static int reg(void *arg, void *addr, size_t len, unsigned access, struct pinwheel_region *region)
{
	(void)arg, (void)len, (void)access;
	*region = (struct pinwheel_region){.handle = addr, .lkey = 1, .rkey = 2};
	return 0;
}

static int dereg(void *arg, void *handle) { return (void)arg, (void)handle, 0; }

static const struct pinwheel_ops ops = {.size = sizeof ops, .reg = reg, .dereg = dereg};
static struct pinwheel_domain *domain;
enum { BYTES = 64 << 10 };
static char *memory; /* as many times BYTES as there are questions; nobody looks into it */

static uint64_t question(int i)
{
	uint64_t start = now();
	struct pinwheel_use use;

	(void)i;
	if (!pinwheel_try_acquire(domain, memory, BYTES, PINWHEEL_LOCAL_WRITE, 0, &use))
		exit(1); /* nothing has registered it */
	return now() - start;
}

static uint64_t first_use(int i)
{
	uint64_t start = now(), end;
	struct pinwheel_use use;

	if (pinwheel_acquire(domain, memory + (size_t)(i + 1) * BYTES, BYTES, PINWHEEL_LOCAL_WRITE, 0, &use))
		exit(1);
	end = now();
	if (pinwheel_release(&use))
		exit(1);
	return end - start;
}

static void measure(const char *what, const char *when, uint64_t (*once)(int), int first, int n)
{
	double *us = calloc((size_t)n, sizeof *us);
	const struct timespec pause = {0, 300000};

	for (int i = 0; i < n; i++) {
		us[i] = (double)once(first + i) / 1e3;
		nanosleep(&pause, NULL);
	}
	qsort(us, (size_t)n, sizeof *us, by_value);
	printf("%-12s %-22s %7.1f us (quartiles %.1f and %.1f, 99 %% %.1f)\n", what, when, us[n / 2], us[n / 4], us[n * 3 / 4],
	       us[n * 99 / 100]);
	free(us);
}

/* Starts a process that never sleeps, and ends with this one. */
static void keep_busy(void)
{
	if (fork())
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		__asm__ volatile("" : : : "memory");
}

int main(int argc, char **argv)
{
	int questions = argc > 1 ? atoi(argv[1]) : 2000;
	struct pinwheel *pw;

	if (questions < 1 || pinwheel_init(NULL, &pw) || pinwheel_domain_open(pw, &ops, NULL, &domain))
		return 2;
	memory = mmap(NULL, (size_t)(2 * questions + 1) * BYTES, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		return 2;
	measure("a question,", "as the machine is:", question, 0, questions);
	measure("a first use,", "as the machine is:", first_use, 0, questions);
	for (long i = sysconf(_SC_NPROCESSORS_ONLN); i > 0; i--)
		keep_busy();
	measure("a question,", "all processors busy:", question, 0, questions);
	measure("a first use,", "all processors busy:", first_use, questions, questions);
	return pinwheel_domain_close(domain) || pinwheel_fini(pw);
}
