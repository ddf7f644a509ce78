/* Memory that is registered past the cache counts, too: a budget bounds all that the process registers. */
#ifndef PINWHEEL_PLAIN_H
#define PINWHEEL_PLAIN_H

#include <errno.h>
#include <unistd.h>

#include "thread.h"

/* The bytes that the kernel pins for a registration; none for a length that no address space has. */
static inline uint64_t pw_whole_pages(const void *addr, size_t bytes)
{
	uint64_t mask = (uint64_t)sysconf(_SC_PAGESIZE) - 1, start = (uint64_t)addr;

	return (uint64_t)bytes >> 62 ? 0 : ((start + bytes + mask) & ~mask) - (start & ~mask);
}

/* Bytes that were counted are registered no more. */
static inline void pw_plain_gives(uint64_t bytes) { __atomic_fetch_sub(&pw.plain_bytes, bytes, __ATOMIC_SEQ_CST); }

/* After a registration past the cache has ended, or was not made. */
static inline void pw_plain_ended(const void *addr, size_t bytes) { pw_plain_gives(pw_whole_pages(addr, bytes)); }

/*
 * Before a registration past the cache. If that exceeds the room that was set aside, the server deregisters what is
 * idle to make room. Returns -1 if the budget has none even so, and the registration counts nevertheless: a transport
 * that has linked us is told, but one that knows nothing of us would end the program. Without a budget nobody is asked.
 * t may be NULL.
 */
static inline int pw_plain_begins(struct pw_thread *t, const void *addr, size_t bytes)
{
	uint64_t used = __atomic_add_fetch(&pw.plain_bytes, pw_whole_pages(addr, bytes), __ATOMIC_SEQ_CST);

	if (pw_likely(used <= __atomic_load_n(&pw.plain_room, __ATOMIC_SEQ_CST)) || !t)
		return 0;
	return pw_ask(t, PW_ASK_ROOM) || t->mail.error != ENOMEM ? 0 : -1;
}

#endif
