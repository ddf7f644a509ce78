/* What counts as registered past the cache; see charged.h. Beside the system call that pins, a lock costs nothing. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/mman.h>

#include "charged.h"
#include "plain.h"
#include "thread.h"

struct charge {
	const void *handle;
	uint64_t bytes;
};

/* An open hash table, of whose entries half are free. A forked child, which may find the lock held, counts nothing. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all below; a leaf */
static struct charge *table;
static unsigned bits; /* log2 of its length */
static size_t used;

#define FIRST_BITS 8u

static size_t place_of(const void *handle)
{
	return (size_t)((uintptr_t)handle * 0x9e3779b97f4a7c15ull >> (64 - bits));
}

static size_t after(size_t i) { return (i + 1) & (((size_t)1 << bits) - 1); }

/* Where the handle is, or the free entry where it belongs. */
static struct charge *entry_of(const void *handle)
{
	size_t i = place_of(handle);

	while (table[i].handle && table[i].handle != handle)
		i = after(i);
	return &table[i];
}

/* Makes room for one more; -1 if there is no memory. */
static int make_room(void)
{
	struct charge *old = table, *fresh;
	size_t length = old ? (size_t)1 << bits : 0;

	if (2 * (used + 1) <= length)
		return 0;
	fresh = mmap(NULL, (length ? 2 * length : (size_t)1 << FIRST_BITS) * sizeof *fresh, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (fresh == MAP_FAILED)
		return -1;
	table = fresh;
	bits = length ? bits + 1 : FIRST_BITS;
	for (size_t i = 0; i < length; i++)
		if (old[i].handle)
			*entry_of(old[i].handle) = old[i];
	if (old)
		munmap(old, length * sizeof *old);
	return 0;
}

static void remember(const void *handle, uint64_t bytes)
{
	struct charge *e = NULL;

	if (!bytes)
		return;
	pthread_mutex_lock(&lock);
	if (!make_room()) {
		e = entry_of(handle);
		used += !e->handle;
		*e = (struct charge){handle, bytes};
	}
	pthread_mutex_unlock(&lock);
	if (!e)
		pw_plain_gives(bytes); /* else nobody ever would */
}

/* Takes out an entry, and moves those behind it that a search would no longer find. */
static void take_out(struct charge *e)
{
	size_t hole = (size_t)(e - table);

	for (size_t i = after(hole); table[i].handle; i = after(i)) {
		size_t mask = ((size_t)1 << bits) - 1, home = place_of(table[i].handle);

		if (((i - home) & mask) < ((i - hole) & mask))
			continue; /* its search begins behind the hole */
		table[hole] = table[i];
		hole = i;
	}
	table[hole] = (struct charge){0};
	used--;
}

/* Returns the bytes that were counted, or 0. */
static uint64_t forget(const void *handle)
{
	uint64_t bytes = 0;

	pthread_mutex_lock(&lock);
	if (table) {
		struct charge *e = entry_of(handle);

		bytes = e->bytes;
		if (e->handle)
			take_out(e);
	}
	pthread_mutex_unlock(&lock);
	return bytes;
}

void pw_charged(void *handle, const void *addr, size_t bytes)
{
	if (handle)
		remember(handle, pw_whole_pages(addr, bytes));
	else
		pw_plain_ended(addr, bytes);
}

int pw_charge_ends(void *handle, int (*end)(void *handle))
{
	uint64_t bytes;
	int rc;

	if (pw_is_disabled())
		return end(handle);
	bytes = forget(handle); /* first, because another thread may get the address of what has ended */
	rc = end(handle);
	if (rc)
		remember(handle, bytes);
	else
		pw_plain_gives(bytes);
	return rc;
}

void pw_charge_moved(const void *handle, const void *addr, size_t bytes)
{
	uint64_t was = forget(handle);

	if (!was)
		return;
	pw_plain_begins(pw_self(), addr, bytes);
	remember(handle, pw_whole_pages(addr, bytes));
	pw_plain_gives(was);
}
