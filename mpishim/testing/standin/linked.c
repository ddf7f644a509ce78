/*
 * What the calls of pinwheel.h do, over mlock(2): the argument says which are made. It
 * exits with 0, or says which expectation was not met.
 */
#define _GNU_SOURCE
#include "linked.h"

/* Without a helper: each use is accounted for once, under what it was. */
static void accounting(void)
{
	char *a = memory(BYTES), *b = memory(BYTES);
	struct pinwheel_stats s;
	struct pinwheel_use u;

	EXPECT(!use_often(a, BYTES, 10));
	EXPECT(!use_often(b, BYTES, 10));
	s = counts(dom);
	EXPECT(s.first == 2 && s.hits == 18 && !s.late && !s.plain && !s.waited && !s.failed);
	EXPECT(s.pinned_regions == 2 && s.pinned_bytes == 2 * BYTES && pins.live == 2);
	EXPECT(pinwheel_clean(pw, dom) == 2 && !pins.live);
	EXPECT(!use_once(a, BYTES));
	s = counts(NULL);
	EXPECT(s.late == 1 && s.first == 2 && s.hits == 18 && s.pinned_regions == 1 && s.peak_pinned_bytes >= 2 * BYTES);

	/* What is contained hits; rights that were not asked for do not; small memory is served. */
	EXPECT(!pinwheel_acquire(dom, a + 5000, 40000, PINWHEEL_LOCAL_WRITE, 7, &u) && u.lkey && u.handle &&
	       u.rkey == ~u.lkey);
	EXPECT(pinwheel_clean(pw, NULL) == 0); /* in use */
	EXPECT(!pinwheel_release(&u) && pinwheel_release(&u) == -EINVAL);
	EXPECT(counts(dom).hits == 19);
	EXPECT(!pinwheel_acquire(dom, a, BYTES, PINWHEEL_REMOTE_READ, 7, &u) && !pinwheel_release(&u));
	EXPECT(counts(dom).hits == 19);
	EXPECT(!use_once(memory(4096) + 100, 200));
	EXPECT(!pinwheel_acquire(dom, a, BYTES, 1 << 7, 0, &u) && !pinwheel_release(&u)); /* IBV_ACCESS_HUGETLB */
	s = counts(dom);
	EXPECT(s.plain == 1 && counts(NULL).plain == 1);
}

static void query(void)
{
	char *a = memory(BYTES);
	struct pinwheel_use u;

	EXPECT(pinwheel_is_registered(dom, a, BYTES, RW) == 0);
	EXPECT(pinwheel_try_acquire(dom, a, BYTES, RW, 0, &u) == -ENOENT && pinwheel_release(&u) == -EINVAL);
	EXPECT(pins.regs == 0);
	EXPECT(!use_once(a, BYTES));
	EXPECT(pinwheel_is_registered(dom, a, BYTES, RW) == 1);
	EXPECT(pinwheel_is_registered(dom, a + 1, BYTES - 2, PINWHEEL_LOCAL_WRITE) == 1);
	EXPECT(pinwheel_is_registered(dom, a, BYTES, PINWHEEL_REMOTE_ATOMIC) == 0);
	EXPECT(pinwheel_is_registered(dom, a, BYTES + 1, RW) == 0);
	EXPECT(!pinwheel_try_acquire(dom, a, BYTES, RW, 0, &u) && u.handle);
	EXPECT(pinwheel_clean(pw, dom) == 0);
	EXPECT(!pinwheel_release(&u) && pinwheel_clean(pw, dom) == 1);
	EXPECT(pinwheel_is_registered(dom, a, BYTES, RW) == 0);
	EXPECT(pins.regs == 1);
}

static void limit(struct pinwheel_domain *d)
{
	struct pinwheel_limits l = {.size = sizeof l, .bytes = PINWHEEL_UNLIMITED, .regions = 2};
	char *a = memory(BYTES), *b = memory(BYTES), *c = memory(BYTES);
	struct pinwheel_use u, v, w;

	EXPECT(!pinwheel_limits(pw, d, &l));
	EXPECT(!pinwheel_acquire(dom, a, BYTES, RW, 0, &u) && !pinwheel_acquire(dom, b, BYTES, RW, 0, &v));
	EXPECT(pinwheel_acquire(dom, c, BYTES, RW, 0, &w) == -ENOMEM && pinwheel_release(&w) == -EINVAL);
	EXPECT(!pinwheel_release(&u));
	EXPECT(!pinwheel_acquire(dom, c, BYTES, RW, 0, &w) && counts(dom).evicted == 1);
	EXPECT(!pinwheel_release(&v) && !pinwheel_release(&w) && pins.most == 2);
	l.bytes = BYTES; /* lowered: what is idle goes */
	EXPECT(!pinwheel_limits(pw, d, &l) && counts(dom).pinned_bytes == BYTES && pins.live == 1);
	l.bytes = l.regions = PINWHEEL_UNLIMITED;
	EXPECT(!pinwheel_limits(pw, d, &l) && !use_once(a, BYTES) && !use_once(b, BYTES) && pins.live >= 2);
}

static void limits(void) { limit(dom); }
static void limits_of_process(void) { limit(NULL); }

static void bad_arguments(void)
{
	struct pinwheel_options o = {.size = 3};
	struct pinwheel_ops none = {.size = sizeof none};
	struct pinwheel_limits l = {.size = 0};
	struct pinwheel_stats s = {.size = 8};
	struct pinwheel_domain *d;
	struct pinwheel_use u = {0};
	struct pinwheel *p;
	char *a = memory(BYTES);

	EXPECT(pinwheel_init(NULL, NULL) == -EINVAL && pinwheel_init(&o, &p) == -EINVAL);
	EXPECT(pinwheel_domain_open(NULL, &pin_ops, NULL, &d) == -EINVAL &&
	       pinwheel_domain_open(pw, NULL, NULL, &d) == -EINVAL);
	EXPECT(pinwheel_domain_open(pw, &none, NULL, &d) == -EINVAL &&
	       pinwheel_domain_open(pw, &pin_ops, NULL, NULL) == -EINVAL);
	EXPECT(pinwheel_acquire(NULL, a, BYTES, RW, 0, &u) == -EINVAL &&
	       pinwheel_acquire(dom, a, BYTES, RW, 0, NULL) == -EINVAL);
	EXPECT(pinwheel_acquire(dom, a, 0, RW, 0, &u) == -EINVAL &&
	       pinwheel_acquire(dom, a, SIZE_MAX, RW, 0, &u) == -EINVAL);
	EXPECT(pinwheel_acquire(dom, (void *)UINTPTR_MAX, 1, RW, 0, &u) == -EINVAL);
	EXPECT(pinwheel_try_acquire(NULL, a, BYTES, RW, 0, &u) == -EINVAL &&
	       pinwheel_try_acquire(dom, a, 0, RW, 0, &u) == -EINVAL);
	EXPECT(pinwheel_release(NULL) == -EINVAL && pinwheel_release(&u) == -EINVAL);
	EXPECT(pinwheel_is_registered(NULL, a, BYTES, RW) == -EINVAL && pinwheel_is_registered(dom, a, 0, RW) == -EINVAL);
	EXPECT(pinwheel_limits(NULL, dom, &l) == -EINVAL && pinwheel_limits(pw, dom, NULL) == -EINVAL &&
	       pinwheel_limits(pw, dom, &l) == -EINVAL);
	EXPECT(pinwheel_clean(NULL, dom) == -EINVAL);
	EXPECT(pinwheel_stats(NULL, dom, &s) == -EINVAL && pinwheel_stats(pw, dom, NULL) == -EINVAL &&
	       pinwheel_stats(pw, dom, &s) == -EINVAL);
	EXPECT(pinwheel_domain_close(NULL) == -EINVAL && pinwheel_fini(NULL) == -EINVAL);
	EXPECT(pinwheel_fini(pw) == -EBUSY); /* the domain is open */
	EXPECT(pins.regs == 0 && !use_once(a, BYTES));
}

/* What nobody can register is refused, and the rest goes on. */
static void huge(void)
{
	char *a = memory(BYTES), *reserved = mmap(NULL, (size_t)1 << 42, PROT_NONE,
						  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct pinwheel_use u;

	for (int shift = 42; shift < 64; shift++)
		for (int i = 0; i < 2; i++) {
			char *at = i ? reserved : a;
			size_t bytes = (size_t)1 << shift;

			EXPECT(pinwheel_acquire(dom, at, bytes, RW, 0, &u) < 0 && pinwheel_release(&u) == -EINVAL);
			EXPECT(pinwheel_try_acquire(dom, at, bytes, RW, 0, &u) == -ENOENT);
			EXPECT(pinwheel_acquire(dom, at, bytes, 1 << 7, 0, &u) < 0);
			EXPECT(pinwheel_is_registered(dom, at, bytes, RW) == 0);
			EXPECT(!use_often(a, BYTES, 3));
		}
	EXPECT(pinwheel_acquire(dom, a, SIZE_MAX - 100, RW, 0, &u) == -EINVAL &&
	       pinwheel_acquire(dom, a, -(size_t)a - 4096, RW, 0, &u) < 0);
	EXPECT(counts(NULL).plain == 0 && pins.live <= 1);
}

/* Four threads share buffers, and release what others acquired. */
#define BUFFERS 16
static char *shared[BUFFERS];
static struct {
	pthread_mutex_t lock;
	struct pinwheel_use use;
	int held;
} slot[8];

static void *in_thread(void *seed)
{
	unsigned r = (unsigned)(uintptr_t)seed;
	intptr_t failed = 0;

	for (int i = 0; i < 20000; i++) {
		int k = rand_r(&r) % 8;

		pthread_mutex_lock(&slot[k].lock);
		if (slot[k].held) {
			pin_end(&slot[k].use);
			failed += pinwheel_release(&slot[k].use) != 0;
			slot[k].held = 0;
		} else if (!pinwheel_acquire(dom, shared[rand_r(&r) % BUFFERS], BYTES, RW, 0, &slot[k].use)) {
			pin_begin(&slot[k].use);
			slot[k].held = 1;
		} else {
			failed++;
		}
		pthread_mutex_unlock(&slot[k].lock);
		if (i % 1000 == 0)
			failed += pinwheel_clean(pw, dom) < 0;
	}
	return (void *)failed;
}

static void threads(void)
{
	for (int i = 0; i < BUFFERS; i++)
		shared[i] = memory(BYTES);
	for (int k = 0; k < 8; k++)
		pthread_mutex_init(&slot[k].lock, NULL);
	for (int round = 0; round < 2; round++) { /* blocks of threads that have ended serve new ones */
		pthread_t t[4];
		void *failed;

		for (uintptr_t i = 0; i < 4; i++)
			pthread_create(&t[i], NULL, in_thread, (void *)(i + 1));
		for (int i = 0; i < 4; i++)
			pthread_join(t[i], &failed), EXPECT(!failed);
	}
	for (int k = 0; k < 8; k++)
		if (slot[k].held)
			pin_end(&slot[k].use), EXPECT(!pinwheel_release(&slot[k].use));
}

int main(int argc, char **argv)
{
	static const struct mode modes[] = {
		{"accounting", accounting, 1}, {"query", query, 1},     {"limits", limits, 1},
		{"process-limits", limits_of_process, 1},
		{"arguments", bad_arguments, 1}, {"threads", threads, 1}, {"huge", huge, 1}, {0},
	};

	return play(modes, argc, argv);
}
