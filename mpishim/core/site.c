/*
 * Call sites. A bounded walk along frame pointers finds one and reads nothing but the stack of its
 * thread. Each call site has one struct pw_site. Only the first encounter of a site takes a
 * lock; nothing makes a system call or allocates.
 */
#define _GNU_SOURCE
#include <link.h>
#include <pthread.h>
#include <string.h>

#include "site.h"

/* Code of the program and its libraries. A return address lies in it. Any other word is data of a function that
 * was built without frame pointers. */
#define PW_TEXTS 64u
static struct {
	uint64_t start, end;
} text[PW_TEXTS];
static unsigned texts;

static int add_text(struct dl_phdr_info *info, size_t size, void *unused)
{
	(void)size;
	(void)unused;
	for (int i = 0; i < info->dlpi_phnum && texts < PW_TEXTS; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X))
			continue;
		text[texts].start = info->dlpi_addr + p->p_vaddr;
		text[texts].end = text[texts].start + p->p_memsz;
		texts++;
	}
	return 0;
}

/* Called at the end of MPI_Init: the program itself comes first, and is nearly always what is found. */
void pw_site_init(void)
{
	if (!texts)
		dl_iterate_phdr(add_text, NULL);
}

static inline int is_code(uint64_t address)
{
	for (unsigned i = 0; i < texts; i++)
		if (address - text[i].start < text[i].end - text[i].start)
			return 1;
	return 0;
}

/* The frame of the caller; NULL if this one does not lead to it. */
static inline void **outer(void **frame, uint64_t stack_end)
{
	uint64_t up = (uint64_t)frame[0];

	return up > (uint64_t)frame && up <= stack_end - 16 && !(up & 7) ? (void **)up : NULL;
}

void pw_site_walk(void **frame, uint64_t stack_end, uint64_t frames[PW_FRAMES])
{
	for (unsigned i = 0; i < PW_FRAMES; i++)
		frames[i] = 0;
	for (unsigned n = 0; n < PW_FRAMES && frame && is_code((uint64_t)frame[1]); n++) {
		frames[n] = (uint64_t)frame[1];
		frame = outer(frame, stack_end);
	}
}

/* Whether a walk from this frame ends in this site. */
static inline int is_at(const struct pw_site *s, void **frame, uint64_t stack_end)
{
	for (unsigned n = 0; n < PW_FRAMES; n++) {
		if (!frame)
			return !s->frames[n];
		if (!s->frames[n])
			return !is_code((uint64_t)frame[1]);
		if (s->frames[n] != (uint64_t)frame[1])
			return 0;
		frame = outer(frame, stack_end);
	}
	return 1;
}

/*
 * All call sites, in an open hash table. Half of it stays free so that a search ends soon. A
 * program with more sites, by deep recursion for example, has the rest taken for one
 * unknown site.
 */
#define SITES (1u << 14)
static struct pw_site sites[SITES];
static uint32_t made[SITES]; /* atomic: 1 when the site is complete */
static unsigned count; /* atomic */
static pthread_mutex_t sites_lock = PTHREAD_MUTEX_INITIALIZER; /* of making one; a leaf */
static struct pw_site unknown;

static int is_same(const struct pw_site *s, const uint64_t frames[PW_FRAMES])
{
	uint64_t differences = 0;

	for (unsigned i = 0; i < PW_FRAMES; i++)
		differences |= s->frames[i] ^ frames[i];
	return !differences;
}

static unsigned place_of(const uint64_t frames[PW_FRAMES])
{
	uint64_t hash = 0;

	for (unsigned i = 0; i < PW_FRAMES; i++)
		hash = (hash ^ frames[i]) * 0x9e3779b97f4a7c15ull;
	return (unsigned)(hash >> 50); /* SITES is 2^14 */
}

/* The site of these frames; or NULL, and *at is where it would be. */
static struct pw_site *find(const uint64_t frames[PW_FRAMES], unsigned *at)
{
	for (*at = place_of(frames); __atomic_load_n(&made[*at], __ATOMIC_ACQUIRE); *at = (*at + 1) % SITES)
		if (is_same(&sites[*at], frames))
			return &sites[*at];
	return NULL;
}

static struct pw_site *add(const uint64_t frames[PW_FRAMES])
{
	struct pw_site *s;
	unsigned at;

	pthread_mutex_lock(&sites_lock);
	s = find(frames, &at); /* another thread may have been faster */
	if (!s && count < SITES / 2) {
		memcpy(sites[at].frames, frames, sizeof sites[at].frames);
		sites[at].next = pw.sites;
		__atomic_store_n(&made[at], 1, __ATOMIC_RELEASE);
		__atomic_store_n(&pw.sites, &sites[at], __ATOMIC_RELEASE);
		__atomic_store_n(&count, count + 1, __ATOMIC_RELAXED);
		s = &sites[at];
	}
	pthread_mutex_unlock(&sites_lock);
	return s ? s : &unknown;
}

static __attribute__((noinline)) struct pw_site *find_or_add(const uint64_t frames[PW_FRAMES])
{
	unsigned at;
	struct pw_site *s = find(frames, &at);

	if (s)
		return s;
	return __atomic_load_n(&count, __ATOMIC_RELAXED) < SITES / 2 ? add(frames) : &unknown;
}

static struct pw_site **cache_of(struct pw_thread *t, uint64_t first, uint64_t second, uint64_t third)
{
	uint64_t hash = (first + 3 * second + 5 * third) * 0x9e3779b97f4a7c15ull;

	return &t->site_cache[hash >> 58]; /* PW_SITE_CACHE is 2^6 */
}

static __attribute__((noinline)) struct pw_site *walk(void **frame, uint64_t stack_end)
{
	uint64_t frames[PW_FRAMES];

	pw_site_walk(frame, stack_end, frames);
	return find_or_add(frames);
}

/* A call site that was met before is compared with the stack, which needs no look at what is code. */
struct pw_site *pw_site_here(struct pw_thread *t, void **frame)
{
	void **second = outer(frame, t->stack_end), **third = second ? outer(second, t->stack_end) : NULL;
	struct pw_site **cached = cache_of(t, (uint64_t)frame[1], second ? (uint64_t)second[1] : 0,
						 third ? (uint64_t)third[1] : 0);

	if (pw_unlikely(!*cached || !is_at(*cached, frame, t->stack_end)))
		*cached = walk(frame, t->stack_end);
	return *cached;
}

struct pw_site *pw_site_at(struct pw_thread *t, uint64_t address)
{
	const uint64_t frames[PW_FRAMES] = {address};
	struct pw_site **cached = cache_of(t, address, 0, 0);

	if (pw_unlikely(!*cached || (*cached)->frames[0] != address || (*cached)->frames[1]))
		*cached = find_or_add(frames);
	return *cached;
}
