/*
 * Pinning. A memory region is a registered buffer of one of the process's rings, one for each GiB. Small
 * regions share the first rings; a large one gets a ring to itself while there are any, because
 * the kernel holds a ring's lock while it pins, and transfers of other regions would wait.
 */
#include "sv.h"
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#define SHARED 4u          /* rings for small regions */
#define LARGE (1u << 20)
#define SLOTS 16384u       /* the most that io_uring has */
#define LARGE_SLOTS 1024u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards what follows */
static struct table {
	int fd;
	unsigned slots, used, next;
	unsigned char taken[SLOTS];
} table[SV_RINGS];
static struct held {
	struct held *next;
	uintptr_t start, end;
} *held; /* memory under mlock, which the kernel doesn't count per region */

static int64_t pinned_pages; /* as ib_umem_get counts them, every region for itself */

int sv_pin_open(void)
{
	int fd;

	memset(table, 0, sizeof(table));
	held = NULL;
	pinned_pages = 0;
	for (unsigned i = 0; i < SV_RINGS; i++)
		table[i].fd = -1, table[i].slots = i < SHARED ? SLOTS : LARGE_SLOTS;
	fd = sv_ring_make(0, SLOTS);
	if (fd == -ENOMEM) /* RLIMIT_MEMLOCK has no room for the ring itself: registrations will fail */
		return 0;
	if (fd < 0) {
		sv_say("no io_uring to pin memory with: %s (see /proc/sys/kernel/io_uring_disabled)", strerror(-fd));
		return -fd;
	}
	table[0].fd = fd;
	return 0;
}

static int may_lock_all(void)
{
	struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct d[2] = {0};

	return !syscall(SYS_capget, &h, d) && d[CAP_IPC_LOCK / 32].effective & 1u << CAP_IPC_LOCK % 32;
}

/* Once in a process: a program may go on with less. */
static void tell_limit(void)
{
	static int told;
	struct rlimit l;

	if (!__atomic_exchange_n(&told, 1, __ATOMIC_RELAXED) && !getrlimit(RLIMIT_MEMLOCK, &l))
		sv_say("no more memory may be pinned: %ld KiB are, and ulimit -l is %lu KiB for all processes of this user",
		       (long)__atomic_load_n(&pinned_pages, __ATOMIC_RELAXED) * 4, (unsigned long)l.rlim_cur >> 10);
}

/* As drivers/infiniband/core/umem.c does it. */
static int account(int64_t pages)
{
	struct rlimit l;

	if (__atomic_add_fetch(&pinned_pages, pages, __ATOMIC_RELAXED) <= 0 || getrlimit(RLIMIT_MEMLOCK, &l) || pages < 0)
		return 0;
	if (__atomic_load_n(&pinned_pages, __ATOMIC_RELAXED) <= (int64_t)(l.rlim_cur / 4096) || may_lock_all())
		return 0;
	__atomic_sub_fetch(&pinned_pages, pages, __ATOMIC_RELAXED);
	tell_limit();
	return l.rlim_cur ? ENOMEM : EPERM;
}

static int update(int fd, unsigned slot, struct iovec *iov)
{
	struct io_uring_rsrc_update2 u = {.offset = slot, .data = (uintptr_t)iov, .nr = 1};
	long n = syscall(SYS_io_uring_register, fd, IORING_REGISTER_BUFFERS_UPDATE, &u, sizeof(u));

	return n == 1 ? 0 : n < 0 ? errno : ENOMEM;
}

/* Consecutive free slots, taken; slots if there are none. */
static unsigned take(struct table *t, unsigned n)
{
	for (unsigned tried = 0, run = 0; tried < 2 * t->slots; tried++) {
		if (t->next == t->slots)
			t->next = run = 0;
		run = t->taken[t->next++] ? 0 : run + 1;
		if (run == n) {
			memset(t->taken + t->next - n, 1, n);
			t->used += n;
			return t->next - n;
		}
	}
	return t->slots;
}

/* The ring for a region: an unused one for a large one, if there is any. */
static uint32_t choose(uint64_t len)
{
	static uint32_t turn;
	uint32_t first = len < LARGE ? 0 : SHARED, last = len < LARGE ? SHARED : SV_RINGS, best = first;

	if (len < LARGE)
		best = turn++ % SHARED;
	else
		for (uint32_t i = first; i < last; i++)
			if (table[i].used < table[best].used || (!table[i].used && table[best].used))
				best = i;
	if (table[best].fd < 0 && (table[best].fd = sv_ring_make(best, table[best].slots)) < 0)
		best = 0;
	return best;
}

static void give_back(struct table *t, unsigned slot, unsigned n)
{
	pthread_mutex_lock(&lock);
	memset(t->taken + slot, 0, n);
	t->used -= n;
	pthread_mutex_unlock(&lock);
}

static void page_bounds(uint64_t addr, uint64_t len, uintptr_t *start, uintptr_t *end)
{
	*start = addr & ~4095ull;
	*end = (addr + len + 4095) & ~4095ull;
}

/* Memory that may not be written, for a region that does not ask to: mlock, and whoever reads it reads the mapping. */
static int hold(uint64_t addr, uint64_t len)
{
	struct held *h = malloc(sizeof(*h));
	int err = 0;

	if (!h)
		return ENOMEM;
	page_bounds(addr, len, &h->start, &h->end);
	pthread_mutex_lock(&lock);
	if (mlock((void *)h->start, h->end - h->start)) {
		err = errno == EPERM ? EPERM : EFAULT;
		free(h);
	} else {
		h->next = held;
		held = h;
	}
	pthread_mutex_unlock(&lock);
	return err;
}

static void let_go(uint64_t addr, uint64_t len)
{
	struct held **at, *h;
	uintptr_t start, end;

	page_bounds(addr, len, &start, &end);
	pthread_mutex_lock(&lock);
	for (at = &held; (h = *at) && (h->start != start || h->end != end); at = &h->next)
		;
	if (h) {
		*at = h->next;
		munlock((void *)start, end - start);
		free(h);
		for (h = held; h; h = h->next)
			if (h->start < end && start < h->end)
				mlock((void *)h->start, h->end - h->start);
	}
	pthread_mutex_unlock(&lock);
}

/* Fails only as long as nothing is unpinned. */
static int unset(struct table *t, unsigned slot, unsigned n)
{
	int err = update(t->fd, slot, &(struct iovec){0});

	if (err)
		return err;
	for (unsigned i = 1; i < n; i++)
		update(t->fd, slot + i, &(struct iovec){0});
	give_back(t, slot, n);
	return 0;
}

static int64_t pages_of(uint64_t addr, uint64_t len)
{
	uintptr_t start, end;

	page_bounds(addr, len, &start, &end);
	return (int64_t)((end - start) / 4096);
}

int sv_pin(struct sv_key *k, void *addr, uint64_t len)
{
	unsigned n = (unsigned)((len + SV_PIECE - 1) / SV_PIECE);
	struct table *t;
	int err;

	if ((err = account(pages_of((uintptr_t)addr, len))))
		return err;
	pthread_mutex_lock(&lock);
	k->ring = choose(len), t = &table[k->ring];
	k->slot = t->fd < 0 ? t->slots : take(t, n), k->slots = n;
	pthread_mutex_unlock(&lock);
	if (k->slot == t->slots) {
		account(-pages_of((uintptr_t)addr, len));
		if (t->fd < 0)
			tell_limit();
		return ENOMEM;
	}
	for (unsigned i = 0; i < n; i++) {
		uint64_t at = i * SV_PIECE, b = len - at < SV_PIECE ? len - at : SV_PIECE;

		if (!(err = update(t->fd, k->slot + i, &(struct iovec){(char *)addr + at, b})))
			continue;
		unset(t, k->slot, n);
		if ((err == EFAULT || err == EOPNOTSUPP) && !(k->access & IBV_ACCESS_LOCAL_WRITE)) {
			k->ring = SV_LOCKED;
			err = hold((uintptr_t)addr, len);
		}
		if (err)
			account(-pages_of((uintptr_t)addr, len));
		if (err == ENOMEM)
			tell_limit();
		return err == EOPNOTSUPP ? EFAULT : err;
	}
	return 0;
}

/* The key is no longer valid: transfers that found it so have the ring's lock. */
int sv_unpin(struct sv_key *k)
{
	int err;

	sv_ring_quiesce(k->ring == SV_LOCKED ? 0 : k->ring);
	if (k->ring == SV_LOCKED)
		let_go(k->addr, k->len);
	else if ((err = unset(&table[k->ring], k->slot, k->slots)))
		return err;
	account(-pages_of(k->addr, k->len));
	return 0;
}
