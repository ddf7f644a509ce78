/* What a process did on the device: a line at its exit, added to the file that SOFTVERBS_STATS names. */
#include "sv.h"
#include <fcntl.h>

static uint64_t regions, region_bytes, requests, large, large_bytes;

void sv_stats_region(uint64_t bytes)
{
	__atomic_add_fetch(&regions, 1, __ATOMIC_RELAXED);
	__atomic_add_fetch(&region_bytes, bytes, __ATOMIC_RELAXED);
}

void sv_stats_request(uint32_t opcode, uint64_t bytes)
{
	__atomic_add_fetch(&requests, 1, __ATOMIC_RELAXED);
	if (bytes < SV_LARGE || opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM)
		return;
	__atomic_add_fetch(&large, 1, __ATOMIC_RELAXED);
	__atomic_add_fetch(&large_bytes, bytes, __ATOMIC_RELAXED);
}

static void tell(void)
{
	char line[256];
	int fd = open(getenv("SOFTVERBS_STATS"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	int n = snprintf(line, sizeof(line),
			 "pid %d regions %lu region_bytes %lu requests %lu large %lu large_bytes %lu\n",
			 getpid(), (unsigned long)regions, (unsigned long)region_bytes, (unsigned long)requests,
			 (unsigned long)large, (unsigned long)large_bytes);

	if (fd < 0 || write(fd, line, (size_t)n) != n)
		sv_say("no statistics: %s", strerror(errno));
	if (fd >= 0)
		close(fd);
}

void sv_stats_open(void)
{
	if (getenv("SOFTVERBS_STATS"))
		atexit(tell);
}
