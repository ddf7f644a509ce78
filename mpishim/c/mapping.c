/*
 * The calls that change mappings, for where the kernel does not tell of them
 * (pw.want_hooks; package vmwatch is the real thing). They see the program's own
 * calls, not those inside the C library: free() is kept from unmapping by
 * mallopt, and what remains open is said in the log.
 *
 * A change is told before the kernel makes it, so that no other thread can
 * have got the address before, and again afterwards, for what was registered in between.
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shim.h"

/* Linux 5.18, 6.13: <asm-generic/mman-common.h> of Debian 12 lacks the second. */
#define DONTNEED_LOCKED 24
#define GUARD_INSTALL 102

static void tell(uint64_t start, uint64_t bytes)
{
	uint64_t at = __atomic_fetch_add(&pw.change_head, 1, __ATOMIC_ACQ_REL);
	struct pw_change *c = &pw.change[at & (PW_CHANGES - 1)];

	__atomic_store_n(&c->turn, 0, __ATOMIC_RELEASE);
	c->start = start;
	c->end = start + bytes < start ? UINT64_MAX : start + bytes;
	__atomic_store_n(&c->turn, at + 1, __ATOMIC_RELEASE);
	__atomic_fetch_add(&pw.change_word, 1, __ATOMIC_SEQ_CST);
}

#define AROUND(start, bytes, call) \
	do { \
		int told = pw_unlikely(__atomic_load_n(&pw.want_hooks, __ATOMIC_RELAXED)); \
		if (told) \
			tell((uint64_t)(uintptr_t)(start), bytes); \
		call; \
		if (told) \
			tell((uint64_t)(uintptr_t)(start), bytes); \
	} while (0)

PW_EXPORT int munmap(void *addr, size_t bytes)
{
	long rc;

	AROUND(addr, bytes, rc = syscall(SYS_munmap, addr, bytes));
	return (int)rc;
}

PW_EXPORT void *mmap(void *addr, size_t bytes, int prot, int flags, int fd, off_t offset)
{
	long rc;

	if (!(flags & MAP_FIXED))
		return (void *)syscall(SYS_mmap, addr, bytes, prot, flags, fd, offset);
	AROUND(addr, bytes, rc = syscall(SYS_mmap, addr, bytes, prot, flags, fd, offset));
	return (void *)rc;
}

PW_EXPORT void *mmap64(void *addr, size_t bytes, int prot, int flags, int fd, off64_t offset)
{
	return mmap(addr, bytes, prot, flags, fd, offset);
}

PW_EXPORT void *mremap(void *addr, size_t bytes, size_t now, int flags, ...)
{
	void *to = NULL;
	va_list args;
	long rc;

	if (flags & MREMAP_FIXED) {
		va_start(args, flags);
		to = va_arg(args, void *);
		va_end(args);
		AROUND(to, now, rc = 0);
	}
	AROUND(addr, bytes, rc = syscall(SYS_mremap, addr, bytes, now, flags, to));
	return (void *)rc;
}

PW_EXPORT int madvise(void *addr, size_t bytes, int advice)
{
	long rc;

	if (advice != MADV_DONTNEED && advice != MADV_REMOVE && advice != DONTNEED_LOCKED && advice != GUARD_INSTALL)
		return (int)syscall(SYS_madvise, addr, bytes, advice);
	AROUND(addr, bytes, rc = syscall(SYS_madvise, addr, bytes, advice));
	return (int)rc;
}

/* How long the segment is nobody says: everything above it. */
PW_EXPORT int shmdt(const void *addr)
{
	long rc;

	AROUND(addr, UINT64_MAX, rc = syscall(SYS_shmdt, addr));
	return (int)rc;
}
