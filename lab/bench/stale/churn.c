#include "changes.h"
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void *malloc_pages(size_t n)
{
	uintptr_t block = (uintptr_t)malloc(n + 8192);
	return block ? (void *)((block + 4095) & ~(uintptr_t)4095) : NULL;
}

long malloc_churn(long ns)
{
	enum { BLOCKS = 64 };
	static char *blocks[BLOCKS];
	uint64_t end = now_ns() + (uint64_t)ns, random = 88172645463325252u;
	long rounds = 0;
	for (; now_ns() < end; rounds++) {
		random ^= random << 13, random ^= random >> 7, random ^= random << 17; /* xorshift64 */
		char **block = &blocks[random % BLOCKS];
		size_t n = (32u << 10) + (random >> 8) % (2u << 20);
		free(*block);
		*block = malloc(n);
		if (!*block)
			break;
		for (size_t at = 0; at < n; at += 4096)
			(*block)[at] = 1;
	}
	return rounds;
}
