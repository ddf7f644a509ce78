#define _GNU_SOURCE
#include "bind.h"

#include <dlfcn.h>
#include <errno.h>
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

static struct pw_shared *shared;
static uint32_t bound;

void pw_futex_wait(uint32_t *word, uint32_t value)
{
	syscall(SYS_futex, word, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

void pw_futex_wake(uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 0x7fffffff, NULL, NULL, 0);
}

/* The C side calls this, once. */
__attribute__((visibility("default"))) void pw_bind(struct pw_shared *s)
{
	shared = s;
	__atomic_store_n(&bound, 1, __ATOMIC_RELEASE);
	pw_futex_wake(&bound);
}

struct pw_shared *pw_wait_bound(void)
{
	while (!__atomic_load_n(&bound, __ATOMIC_ACQUIRE))
		pw_futex_wait(&bound, 0);
	return shared;
}

void *pw_call_reg(struct pw_shared *s, void *pd, uint64_t addr, size_t bytes, unsigned access)
{
	errno = 0;
	return s->reg(pd, (void *)addr, bytes, addr, access);
}

int pw_call_dereg(struct pw_shared *s, void *mr) { return s->dereg(mr); }

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

static int first(struct dl_phdr_info *info, size_t size, void *base)
{
	(void)size;
	*(uint64_t *)base = info->dlpi_addr;
	return 1;
}

/* Where the program itself is loaded. */
uint64_t pw_program_base(void)
{
	uint64_t base = 0;

	dl_iterate_phdr(first, &base);
	return base;
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
