#define _GNU_SOURCE
#include "bind.h"

#include <dlfcn.h>
#include <link.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#ifdef __x86_64__
#include <x86intrin.h>
#endif

static struct pw_shared *bound; /* bound, and not served yet: the newest */
static uint32_t binds;           /* futex */

void pw_futex_wait(uint32_t *word, uint32_t value)
{
	syscall(SYS_futex, word, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

void pw_futex_wake(uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 0x7fffffff, NULL, NULL, 0);
}

__attribute__((visibility("default"))) int pw_bind(struct pw_shared *s, uint64_t layout)
{
	if (layout != PW_LAYOUT)
		return -1;
	s->next = __atomic_load_n(&bound, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(&bound, &s->next, s, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
	__atomic_fetch_add(&binds, 1, __ATOMIC_RELEASE);
	pw_futex_wake(&binds);
	return 0;
}

struct pw_shared *pw_take_bound(void)
{
	for (;;) {
		uint32_t seen = __atomic_load_n(&binds, __ATOMIC_ACQUIRE);
		struct pw_shared *s = __atomic_exchange_n(&bound, NULL, __ATOMIC_ACQUIRE);

		if (s)
			return s;
		pw_futex_wait(&binds, seen);
	}
}

struct pw_registration pw_register(struct pw_shared *s, void *pd, uint64_t addr, size_t bytes, unsigned access)
{
	struct pw_registration p = {0};

	p.error = s->register_region(pd, (void *)addr, bytes, access, &p.region);
	return p;
}

int pw_deregister(struct pw_shared *s, void *pd, uint64_t handle) { return s->deregister_region(pd, (void *)handle); }

uint64_t pw_read_ticks(const struct pw_shared *s)
{
	struct timespec t;

#ifdef __x86_64__
	if (!s->ticks_are_ns)
		return __rdtsc();
#else
	(void)s;
#endif
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* What one reading adds to an interval between two. */
uint64_t pw_ticks_cost(const struct pw_shared *s)
{
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < 100; i++) {
		uint64_t before = pw_read_ticks(s), cost = pw_read_ticks(s) - before;

		if (cost < least)
			least = cost;
	}
	return least;
}

static int first(struct dl_phdr_info *info, size_t size, void *to)
{
	(void)size;
	*(struct dl_phdr_info *)to = *info;
	return 1;
}

/* Where the program itself is loaded. */
uint64_t pw_program_base(void)
{
	struct dl_phdr_info program = {0};

	dl_iterate_phdr(first, &program);
	return program.dlpi_addr;
}

uint64_t pw_loads(void)
{
	struct dl_phdr_info program = {0};

	dl_iterate_phdr(first, &program);
	return program.dlpi_adds + program.dlpi_subs;
}

const char *pw_symbol_of(uint64_t address, const char **file, uint64_t *offset)
{
	Dl_info i;

	if (!dladdr((void *)address, &i))
		return NULL;
	*file = i.dli_fname;
	*offset = address - (uint64_t)(i.dli_sname ? i.dli_saddr : i.dli_fbase);
	return i.dli_sname ? i.dli_sname : "";
}

struct pw_recorder *pw_new_recorder(void)
{
	void *r = mmap(NULL, sizeof(struct pw_recorder), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return r == MAP_FAILED ? NULL : r;
}

void pw_free(uint64_t address) { free((void *)address); }
