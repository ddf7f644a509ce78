/*
 * What pinwheel_acquire and pinwheel_release of registered memory cost, in
 * nanoseconds, beside two calls that do nothing. Buffers in turn, in bursts with
 * pauses, so that the helper thread keeps up. The callbacks pin nothing: what is measured is the path.
 *
 *   hit [BURSTS [BUFFERS]]
 */
#define _GNU_SOURCE
#include <pinwheel.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "timing.h"

#define BYTES (64 << 10)
#define BURST 64
#define RW (PINWHEEL_LOCAL_WRITE | PINWHEEL_REMOTE_WRITE)

static int reg(void *arg, void *addr, size_t len, unsigned access, struct pinwheel_region *region)
{
	(void)arg, (void)len, (void)access;
	*region = (struct pinwheel_region){.handle = addr, .lkey = 1, .rkey = 2};
	return 0;
}

static int dereg(void *arg, void *handle) { return (void)arg, (void)handle, 0; }

static const struct pinwheel_ops ops = {.size = sizeof ops, .reg = reg, .dereg = dereg};
static struct pinwheel_domain *domain;
static struct pinwheel_use use;
static char *buf[1024];
static int buffers = 16;

static __attribute__((noipa)) int nothing(void *domain, void *addr, size_t len, unsigned access, uint64_t site,
					  void *use)
{
	(void)domain, (void)addr, (void)len, (void)access, (void)site, (void)use;
	return 0;
}

static double empty(int i, uint64_t site)
{
	uint64_t start = now();

	for (int k = 0; k < BURST; k++, i++) {
		nothing(domain, buf[i % buffers], BYTES, RW, site, &use);
		nothing(&use, NULL, 0, 0, 0, NULL);
	}
	return (double)(now() - start) / BURST;
}

static double hit(int i, uint64_t site)
{
	uint64_t start = now();

	for (int k = 0; k < BURST; k++, i++)
		if (pinwheel_acquire(domain, buf[i % buffers], BYTES, RW, site, &use) || pinwheel_release(&use))
			exit(1);
	return (double)(now() - start) / BURST;
}

int main(int argc, char **argv)
{
	static const char *const names[] = {"two empty calls", "acquire + release, with a site",
		"acquire + release, site 0"};
	int bursts = argc > 1 ? atoi(argv[1]) : 4000;
	struct pinwheel_stats s = {.size = sizeof s};
	const struct timespec pause = {0, 300000};
	struct pinwheel *pw;
	double *ns[3];

	buffers = argc > 2 ? atoi(argv[2]) : buffers;
	if (buffers < 1 || buffers > 1024 || pinwheel_init(NULL, &pw) || pinwheel_domain_open(pw, &ops, NULL, &domain))
		return 2;
	for (int i = 0; i < buffers; i++)
		buf[i] = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (int m = 0; m < 3; m++)
		ns[m] = calloc((size_t)bursts, sizeof *ns[m]);
	for (int i = 0; i < bursts; i++) {
		ns[0][i] = empty(i * BURST, 7);
		ns[1][i] = hit(i * BURST, 7);
		nanosleep(&pause, NULL);
		ns[2][i] = hit(i * BURST, 0);
		nanosleep(&pause, NULL);
	}
	pinwheel_stats(pw, domain, &s);
	for (int m = 0; m < 3; m++) {
		qsort(ns[m], (size_t)bursts, sizeof *ns[m], by_value);
		printf("%-32s %6.1f ns (quartiles %.1f and %.1f)\n", names[m], ns[m][bursts / 2], ns[m][bursts / 4],
		       ns[m][bursts * 3 / 4]);
	}
	printf("%.2f %% hits\n", 100.0 * (double)s.hits / (double)(s.hits + s.waited + s.first + s.late + s.plain));
	return pinwheel_domain_close(domain) || pinwheel_fini(pw);
}
