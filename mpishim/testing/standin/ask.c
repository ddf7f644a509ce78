/*
 * What a question to the server costs beside its answer, in microseconds: pinwheel_try_acquire of memory
 * that is not registered. First on the machine as it is, then with a process on every processor that never
 * sleeps, as ranks that poll.
 *
 *   ask [QUESTIONS]
 */
#define _GNU_SOURCE
#include <pinwheel.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
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
static char buf[64 << 10];

static void ask(const char *name, int questions)
{
	double *us = calloc((size_t)questions, sizeof *us);
	const struct timespec pause = {0, 300000};
	struct pinwheel_use use;

	for (int i = 0; i < questions; i++) {
		uint64_t start = now();

		if (!pinwheel_try_acquire(domain, buf, sizeof buf, PINWHEEL_LOCAL_WRITE, 0, &use))
			exit(1); /* nothing has registered it */
		us[i] = (double)(now() - start) / 1e3;
		nanosleep(&pause, NULL);
	}
	qsort(us, (size_t)questions, sizeof *us, by_value);
	printf("a question, %-22s %7.1f us (quartiles %.1f and %.1f, 99 %% %.1f)\n", name, us[questions / 2],
	       us[questions / 4], us[questions * 3 / 4], us[questions * 99 / 100]);
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
	ask("as the machine is:", questions);
	for (long i = sysconf(_SC_NPROCESSORS_ONLN); i > 0; i--)
		keep_busy();
	ask("all processors busy:", questions);
	return pinwheel_domain_close(domain) || pinwheel_fini(pw);
}
