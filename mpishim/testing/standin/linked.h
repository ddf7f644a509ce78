/* What linked.c and linkedlife.c have in common: a transport with one domain over mlock(2). */
#ifndef LINKED_H
#define LINKED_H

#include <stdint.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "pin.h"

#define BYTES (64 << 10)
#define RW (PINWHEEL_LOCAL_WRITE | PINWHEEL_REMOTE_WRITE)

static int failures;
#define EXPECT(what) expect(!!(what), #what, __LINE__)

static inline void expect(int is_so, const char *what, int line)
{
	if (is_so)
		return;
	fprintf(stderr, "line %d: not so: %s\n", line, what);
	failures++;
}

static struct pinwheel *pw;
static struct pinwheel_domain *dom;

static inline char *memory(size_t bytes)
{
	char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		abort();
	return memset(p, 1, bytes);
}

static inline void begin(void)
{
	const struct pinwheel_options o = {.size = sizeof o, .name = "stand-in"};

	EXPECT(!pinwheel_init(&o, &pw));
	EXPECT(!pinwheel_domain_open(pw, &pin_ops, NULL, &dom));
}

static inline void end(void)
{
	EXPECT(!pinwheel_domain_close(dom));
	EXPECT(!pinwheel_fini(pw));
	EXPECT(pins.live == 0 && pins.regs == pins.deregs);
}

static inline struct pinwheel_stats counts(struct pinwheel_domain *d)
{
	struct pinwheel_stats s = {.size = sizeof s};

	EXPECT(!pinwheel_stats(pw, d, &s));
	return s;
}

static inline int use_once(char *at, size_t bytes)
{
	struct pinwheel_use u;
	int rc = pinwheel_acquire(dom, at, bytes, RW, 0, &u);

	if (rc)
		return rc;
	pin_begin(&u);
	at[0]++;
	at[bytes - 1]++;
	pin_end(&u);
	return pinwheel_release(&u);
}

static inline int use_often(char *at, size_t bytes, int n)
{
	int rc = 0;

	while (n-- && !rc)
		rc = use_once(at, bytes);
	return rc;
}

/* What a program can be told to do. */
struct mode {
	const char *name;
	void (*run)(void);
	int framed; /* between begin and end */
};

static inline int play(const struct mode *modes, int argc, char **argv)
{
	for (; modes->name; modes++) {
		if (argc < 2 || strcmp(argv[1], modes->name))
			continue;
		if (modes->framed)
			begin();
		modes->run();
		if (modes->framed)
			end();
		if (failures)
			fprintf(stderr, "%d things were not so\n", failures);
		return failures != 0;
	}
	fprintf(stderr, "no such mode\n");
	return 2;
}

#endif
