/*
 * What happens to registrations that pinwheel.h made, over mlock(2): mappings and
 * processes change, domains end, registration fails. The argument says what; it exits
 * with 0, or says which expectation was not met.
 */
#define _GNU_SOURCE
#include "linked.h"

/* What a parent holds is the parent's; a child registers for itself. */
static void forks(void)
{
	char *a = memory(BYTES), *b = memory(BYTES);
	struct pinwheel_use u;

	EXPECT(!pinwheel_acquire(dom, a, BYTES, RW, 0, &u));
	for (int i = 0; i < 5; i++) {
		pid_t child = fork();
		int status;

		if (child == 0) {
			long was = pins.regs, gone = pins.deregs;

			failures = 0;
			EXPECT(!pinwheel_release(&u) && pins.deregs == gone);
			EXPECT(!use_often(b, BYTES, 3) && pins.regs == was + 3 && pins.deregs == gone + 3);
			EXPECT(pinwheel_clean(pw, dom) == 0 && pinwheel_is_registered(dom, a, BYTES, RW) == 0);
			EXPECT(!pinwheel_domain_close(dom) && !pinwheel_fini(pw));
			EXPECT(!pinwheel_init(NULL, &pw) && !pinwheel_domain_open(pw, &pin_ops, NULL, &dom));
			EXPECT(!use_once(b, BYTES) && !pinwheel_domain_close(dom) && !pinwheel_fini(pw));
			_exit(failures ? 1 : 5);
		}
		EXPECT(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 5);
		EXPECT(!use_once(b, BYTES));
	}
	EXPECT(!pinwheel_release(&u));
}

static int is_newest(const struct pinwheel_use *u) { return u->lkey == pins.keys; }

/* Other memory at the same address needs another registration, each time. */
static void renewed(void)
{
	char *a = memory(BYTES);

	for (int i = 0; i < 20; i++) {
		struct pinwheel_use u, again;
		long was = pins.regs;

		EXPECT(!pinwheel_acquire(dom, a, BYTES, RW, 0, &u) && pins.regs > was && is_newest(&u));
		if (i % 2) /* while it is in use */
			EXPECT(mmap(a, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == a);
		else
			EXPECT(!munmap(a, BYTES) && mmap(a, BYTES, PROT_READ | PROT_WRITE,
							 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == a);
		EXPECT(!pinwheel_acquire(dom, a, BYTES, RW, 0, &again) && again.lkey != u.lkey && is_newest(&again));
		EXPECT(!pinwheel_release(&u) && !pinwheel_release(&again));
		EXPECT(!munmap(a, BYTES) && mmap(a, BYTES, PROT_READ | PROT_WRITE,
						 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == a);
	}
}

static void *release(void *use) { return (void *)(intptr_t)pinwheel_release(use); }

/* A domain that is closed while uses are out ends with the last of them. */
static void closing(void)
{
	char *a = memory(BYTES), *b = memory(BYTES), *c = memory(BYTES);
	struct pinwheel_use u, v, w;
	pthread_t t;
	void *rc;

	EXPECT(!pinwheel_acquire(dom, a, BYTES, RW, 0, &u) && !pinwheel_acquire(dom, b, BYTES, 1 << 7, 0, &v) &&
	       !use_once(c, BYTES));
	pin_begin(&u), pin_begin(&v);
	EXPECT(pinwheel_domain_close(dom) == -EBUSY && pins.live == 2);
	EXPECT(pinwheel_acquire(dom, c, BYTES, RW, 0, &w) == -ESHUTDOWN &&
	       pinwheel_acquire(dom, a, BYTES, RW, 0, &w) == -ESHUTDOWN);
	EXPECT(pinwheel_fini(pw) == -EBUSY && pinwheel_domain_close(dom) == -EBUSY);
	pin_end(&u), pin_end(&v);
	pthread_create(&t, NULL, release, &u);
	pthread_join(t, &rc);
	EXPECT(!rc && pins.live == 1);
	EXPECT(!pinwheel_release(&v) && pins.live == 0);
}

/* The last release may still be under way when another thread has closed the domain: neither waits for the other. */
static void last_release(void)
{
	char *a = memory(BYTES);

	for (int i = 0; i < 300; i++) {
		struct pinwheel_domain *d;
		struct pinwheel_use u;
		pthread_t t;
		void *failed;
		int rc;

		EXPECT(!pinwheel_domain_open(pw, &pin_ops, NULL, &d));
		EXPECT(!pinwheel_acquire(d, a, BYTES, RW, 0, &u));
		EXPECT(pinwheel_domain_close(d) == -EBUSY);
		pthread_create(&t, NULL, release, &u);
		while ((rc = pinwheel_domain_close(d)) == -EBUSY)
			;
		EXPECT(!rc && pins.live == 0);
		pthread_join(t, &failed);
		EXPECT(!failed);
	}
}

/* What idle registrations can make room for is served; what they can't fails with the callback's error. */
static void refused(void)
{
	char *a[6];
	struct pinwheel_use u[6];

	for (int i = 0; i < 6; i++)
		EXPECT(!use_once(a[i] = memory(BYTES), BYTES));
	pinwheel_clean(pw, dom);
	pins.room = 3;
	for (int i = 0; i < 6; i++)
		EXPECT(!use_once(a[i], BYTES) && pins.live <= 3);
	for (int i = 0; i < 3; i++)
		EXPECT(!pinwheel_acquire(dom, a[i], BYTES, RW, 0, &u[i]));
	EXPECT(pinwheel_acquire(dom, a[3], BYTES, RW, 0, &u[3]) == -ENOMEM && pinwheel_release(&u[3]) == -EINVAL);
	EXPECT(pinwheel_acquire(dom, a[3], BYTES, 1 << 7, 0, &u[3]) == -ENOMEM);
	EXPECT(!pinwheel_release(&u[0]) && !pinwheel_acquire(dom, a[3], BYTES, 1 << 7, 0, &u[3]) &&
	       !pinwheel_release(&u[3]));
	EXPECT(!pinwheel_release(&u[1]) && !pinwheel_release(&u[2]));
	for (int i = 1; i <= 2; i++) {
		pins.failure = i == 1 ? -EPERM : 1; /* which is no errno */
		pinwheel_clean(pw, dom);
		EXPECT(use_once(a[0], BYTES) == (i == 1 ? -EPERM : -EIO));
	}
	pins.failure = 0;
	EXPECT(!use_once(a[0], BYTES) && counts(dom).failed > 0);
}

/* Begin and end, again and again, with a second user in between. */
static void cycles(void)
{
	char *a = memory(BYTES);

	for (int i = 0; i < 100; i++) {
		struct pinwheel *second;

		begin();
		EXPECT(!pinwheel_init(NULL, &second) && second == pw);
		EXPECT(!use_often(a, BYTES, 3));
		EXPECT(counts(NULL).first + counts(NULL).late + counts(NULL).hits + counts(NULL).plain == 3);
		EXPECT(!pinwheel_fini(second));
		end();
		EXPECT(pinwheel_fini(pw) == -EINVAL);
	}
}

/* More domains than are managed; and places that are used again are as new. */
static void domains(void)
{
	struct pinwheel_domain *many[20];
	char *a = memory(BYTES);
	struct pinwheel_use u;

	for (int round = 0; round < 3; round++) {
		long was = pins.regs;

		for (int i = 0; i < 20; i++) {
			EXPECT(!pinwheel_domain_open(pw, &pin_ops, NULL, &many[i]));
			for (int k = 0; k < 2; k++)
				EXPECT(!pinwheel_acquire(many[i], a, BYTES, RW, 0, &u) && !pinwheel_release(&u));
			EXPECT(counts(many[i]).hits + counts(many[i]).late + counts(many[i]).first + counts(many[i]).plain == 2);
		}
		EXPECT(pins.regs >= was + 20); /* none was served by another domain's */
		for (int i = 0; i < 20; i++)
			EXPECT(!pinwheel_domain_close(many[i]));
	}
}

static void nap(long us)
{
	struct timespec t = {0, us * 1000};

	nanosleep(&t, NULL);
}

/* A use that repeats: the helper deregisters behind it, until it has done so several times. */
static void periodic(void)
{
	char *a = memory(16 * BYTES);
	struct pinwheel_stats s = {0};

	for (int i = 0; i < 3000 && s.helper_deregistrations < 5; i++) {
		EXPECT(!use_once(a, 16 * BYTES));
		nap(10000);
		s = counts(dom);
	}
	EXPECT(s.helper_deregistrations >= 5);
	EXPECT(s.hits + s.waited + s.late + s.first + s.plain > 0 && !s.failed);
}

static int gate; /* atomic: 1 while a thread of the library is to wait in the callback, 2 while one does */
static __thread int is_ours; /* a thread of this program */
static __thread long own;    /* its registrations */

static int gated_reg(void *arg, void *addr, size_t len, unsigned access, struct pinwheel_region *region)
{
	int closed = 1;

	own++;
	if (!is_ours && __atomic_compare_exchange_n(&gate, &closed, 2, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		while (__atomic_load_n(&gate, __ATOMIC_SEQ_CST))
			nap(100);
	return pin_reg(arg, addr, len, access, region);
}

static int may_use; /* atomic: 1 once use_in_thread is to begin */

static void *use_in_thread(void *at)
{
	is_ours = 1;
	while (!__atomic_load_n(&may_use, __ATOMIC_SEQ_CST))
		nap(100);
	return (void *)(intptr_t)use_once(at, BYTES);
}

/*
 * First uses while the library's server is busy for long: they don't wait for it, until nothing more is granted. Whether
 * a use ends before the server hears of it or after makes no difference.
 */
static void first_uses(void)
{
	static const struct pinwheel_ops gated = {.size = sizeof gated, .reg = gated_reg, .dereg = pin_dereg};
	enum { GRANTS = 16, N = 40 };
	struct pinwheel_use u[N];
	char *a[N], *known = memory(BYTES), *fresh = memory(BYTES);
	pthread_t t;
	void *failed;
	int asked = 0;

	is_ours = 1;
	EXPECT(!pinwheel_domain_close(dom) && !pinwheel_domain_open(pw, &gated, NULL, &dom));
	for (int i = 0; i < N; i++)
		a[i] = memory(BYTES);
	EXPECT(!use_once(known, BYTES) && pinwheel_clean(pw, dom) == 1);
	pthread_create(&t, NULL, use_in_thread, known); /* maps a stack: not while the server does not answer */
	for (;; asked++) { /* one may ask because some mapping has just changed */
		EXPECT(!use_once(a[0], BYTES));
		if (own || asked == 100)
			break;
		nap(1000);
		a[0] = memory(BYTES);
	}
	if (!own) {
		fprintf(stderr, "first uses ask\n");
		return;
	}
	gate = 1;
	__atomic_store_n(&may_use, 1, __ATOMIC_SEQ_CST);
	for (int naps = 0; __atomic_load_n(&gate, __ATOMIC_SEQ_CST) != 2; naps++) {
		if (naps == 100000) { /* 10 s */
			fprintf(stderr, "the server registers nothing\n");
			_exit(1);
		}
		nap(100);
	}
	for (int i = 1; i < GRANTS; i++) {
		EXPECT(!pinwheel_acquire(dom, a[i], BYTES, RW, 0, &u[i]) && own == i + 1);
		pin_begin(&u[i]);
		if (i % 2)
			pin_end(&u[i]), EXPECT(!pinwheel_release(&u[i]));
	}
	__atomic_store_n(&gate, 0, __ATOMIC_SEQ_CST);
	for (int i = GRANTS; i < N; i++) {
		EXPECT(!pinwheel_acquire(dom, a[i], BYTES, RW, 0, &u[i]));
		pin_begin(&u[i]);
	}
	pthread_join(t, &failed);
	EXPECT(!failed && counts(dom).first == (uint64_t)(N + 1 + asked) && counts(dom).late == 1 && !counts(dom).plain && pins.live == N + 1 + asked);
	for (int i = 0; i < N; i++)
		EXPECT(!use_once(a[i], BYTES));
	EXPECT(counts(dom).hits == N && pins.regs == N + 2 + asked);
	for (int i = 1; i < N; i++)
		if (i >= GRANTS || i % 2 == 0)
			pin_end(&u[i]), EXPECT(!pinwheel_release(&u[i]));
	EXPECT(pinwheel_clean(pw, dom) == N + 1 + asked && !pins.live);
	for (int i = 0; i < 3; i++) { /* a refusal leaves nothing behind */
		pins.failure = i < 2 ? -EPERM : 0;
		EXPECT(use_once(fresh, BYTES) == pins.failure);
	}
}

/* Nothing is cached: what is not in use is not registered. */
static void plain(void)
{
	char *a = memory(BYTES);
	struct pinwheel_stats s;

	for (int i = 0; i < 10; i++)
		EXPECT(!use_once(a, BYTES) && pins.live == 0);
	s = counts(dom);
	EXPECT(s.plain == 10 && !s.hits && !s.first && counts(NULL).plain == 10 && pins.regs == 10);
	EXPECT(pinwheel_is_registered(dom, a, BYTES, RW) == 0 && pinwheel_clean(pw, NULL) == 0);
}

/* As plain, but it is the cache that keeps nothing. */
static void unwatched(void)
{
	char *a = memory(BYTES);

	for (int i = 0; i < 10; i++)
		EXPECT(!use_once(a, BYTES) && pins.live == 0);
	EXPECT(counts(dom).hits == 0 && pins.regs == 10);
}

int main(int argc, char **argv)
{
	static const struct mode modes[] = {
		{"fork", forks, 1},	{"renewed", renewed, 1},   {"closing", closing, 1},
		{"last-release", last_release, 1}, {"refused", refused, 1}, {"cycles", cycles, 0},
		{"domains", domains, 1}, {"periodic", periodic, 1}, {"first-uses", first_uses, 1}, {"plain", plain, 1},     {"unwatched", unwatched, 1}, {0},
	};

	return play(modes, argc, argv);
}
