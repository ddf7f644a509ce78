/*
 * What pinwheel_prepare does, over mlock(2): the argument says which calls are made. It exits with 0, or
 * says which expectation was not met.
 */
#define _GNU_SOURCE
#include "linked.h"

#include <sys/resource.h>

#define POOL (2 << 20)

static char *pool(void)
{
	char *p = mmap(NULL, POOL, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		abort();
	return p;
}

static size_t present(char *p)
{
	unsigned char is[POOL / 4096] = {0};
	size_t n = 0;

	EXPECT(!mincore(p, POOL, is));
	for (size_t i = 0; i < sizeof is; i++)
		n += is[i] & 1;
	return n;
}

static struct {
	uint64_t done;
	pthread_t by;
	int cancels;
} seen;

static int progress(void *arg, uint64_t done)
{
	EXPECT(arg == &seen && done >= seen.done && done <= POOL);
	seen.done = done;
	seen.by = pthread_self();
	return seen.cancels;
}

static const struct pinwheel_prepare_options watched = {.size = sizeof watched, .threads = 2, .progress = progress, .arg = &seen};

/* One registration, which hits find; its pages were there before it was made. */
static void kept(void)
{
	char *a = pool();

	a[5] = 7;
	EXPECT(!pinwheel_prepare(dom, a, POOL, RW, &watched));
	EXPECT(seen.done == POOL && pthread_equal(seen.by, pthread_self()) && a[5] == 7);
	EXPECT(present(a) == POOL / 4096 && pins.regs == 1 && pins.live == 1 && pinwheel_is_registered(dom, a, POOL, RW) == 1);
	EXPECT(!use_often(a + BYTES, BYTES, 10) && pins.regs == 1);
	EXPECT(counts(dom).first == 0 && counts(dom).pinned_bytes == POOL);
	EXPECT(!pinwheel_prepare(dom, a, POOL, RW, NULL) && pins.regs == 1);
	EXPECT(pinwheel_clean(pw, dom) == 1 && !pins.live);
}

static void nothing_pinned(void) { EXPECT(!pins.live && !counts(dom).pinned_bytes); }

static void refused(void)
{
	const struct pinwheel_limits small = {.size = sizeof small, .bytes = POOL / 2, .regions = 10};
	struct pinwheel_prepare_options short_one = watched;
	char *a = pool(), *b = pool(), *c = pool();
	struct rlimit l;

	short_one.size--;
	EXPECT(pinwheel_prepare(dom, a, 0, RW, NULL) == -EINVAL && pinwheel_prepare(NULL, a, POOL, RW, NULL) == -EINVAL);
	EXPECT(pinwheel_prepare(dom, a, POOL, RW, &short_one) == -EINVAL);
	EXPECT(!munmap(b + BYTES, BYTES) && pinwheel_prepare(dom, b, POOL, RW, NULL) == -EFAULT);
	EXPECT(!mprotect(c, POOL, PROT_READ) && pinwheel_prepare(dom, c, POOL, RW, NULL) == -EFAULT && !present(c));
	EXPECT(!pinwheel_limits(pw, dom, &small) && pinwheel_prepare(dom, a, POOL, RW, NULL) == -ENOMEM && !present(a));
	nothing_pinned();
	EXPECT(!pinwheel_limits(pw, dom, &(struct pinwheel_limits){sizeof small, PINWHEEL_UNLIMITED, PINWHEEL_UNLIMITED}));
	pins.failure = -EPERM;
	EXPECT(pinwheel_prepare(dom, a, POOL, RW, NULL) == -EPERM);
	pins.failure = 0;
	nothing_pinned();
	/* ulimit -l does not bind who has CAP_IPC_LOCK. */
	getrlimit(RLIMIT_MEMLOCK, &l);
	l.rlim_cur = POOL / 2;
	if (geteuid() && !setrlimit(RLIMIT_MEMLOCK, &l)) {
		a = pool();
		EXPECT(pinwheel_prepare(dom, a, POOL, RW, NULL) == -ENOMEM && !present(a));
		nothing_pinned();
	}
}

static void cancelled(void)
{
	char *a = pool();

	seen.cancels = 1;
	for (int i = 0; i < 20; i++) {
		int rc;

		seen.done = 0;
		rc = pinwheel_prepare(dom, a, POOL, RW, &watched);
		EXPECT(rc == -ECANCELED || !rc); /* it may have been over by then */
		EXPECT(pinwheel_is_registered(dom, a, POOL, RW) == !rc && pins.live == !rc);
		pinwheel_clean(pw, dom);
		EXPECT(!madvise(a, POOL, MADV_DONTNEED));
	}
}

#define USERS 3

/* One of several threads that prepare the same pool. What they use of it is their own. */
struct user {
	pthread_t thread;
	char *pool;
	int index;
};

static void *prepare_and_use(void *user)
{
	struct user *me = user;

	for (int i = 0; i < 50; i++) {
		EXPECT(!pinwheel_prepare(dom, me->pool, POOL, RW, NULL));
		EXPECT(!use_once(me->pool + (i % 5 * USERS + me->index) * BYTES, BYTES));
		if (i % 10 == 0)
			pinwheel_clean(pw, dom);
	}
	return NULL;
}

static void together(void)
{
	struct user users[USERS];
	char *a = pool();

	for (int i = 0; i < USERS; i++) {
		users[i] = (struct user){.pool = a, .index = i};
		EXPECT(!pthread_create(&users[i].thread, NULL, prepare_and_use, &users[i]));
	}
	for (int i = 0; i < USERS; i++)
		EXPECT(!pthread_join(users[i].thread, NULL));
}

/* Each use registers for itself, so there is nothing to prepare. */
static void plain(void)
{
	char *a = pool();

	EXPECT(!pinwheel_prepare(dom, a, POOL, RW, &watched) && !pins.regs);
	EXPECT(!use_once(a, BYTES));
	EXPECT(pins.regs == 1 && !pins.live);
}

int main(int argc, char **argv)
{
	static const struct mode modes[] = {
		{"kept", kept, 1}, {"refused", refused, 1}, {"cancelled", cancelled, 1}, {"together", together, 1}, {"plain", plain, 1}, {0},
	};

	return play(modes, argc, argv);
}
