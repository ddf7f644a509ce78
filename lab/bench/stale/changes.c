#define _GNU_SOURCE
#include "changes.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/userfaultfd.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int fresh_at(void *p, size_t n)
{
	void *q = mmap(p, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	return q == p ? 0 : -errno;
}

long libc_call(long nr, long a, long b, long c, long d, long e, long f)
{
	switch (nr) {
	case SYS_mmap: return (long)mmap((void *)a, b, c, d, e, f);
	case SYS_munmap: return munmap((void *)a, b);
	case SYS_mremap: return (long)mremap((void *)a, b, c, d, (void *)e);
	case SYS_madvise: return madvise((void *)a, b, c);
	case SYS_mprotect: return mprotect((void *)a, b, c);
	case SYS_shmat: return (long)shmat(a, (void *)b, c);
	case SYS_shmdt: return shmdt((void *)a);
	}
	return syscall(nr, a, b, c, d, e, f);
}

static long raw(long nr, long a, long b, long c, long d, long e, long f)
{
#ifdef __aarch64__
	register long x8 __asm__("x8") = nr, x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d, x4 __asm__("x4") = e, x5 __asm__("x5") = f;
	__asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
	return x0;
#else
	register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
	long r;
	__asm__ volatile("syscall" : "=a"(r) : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return r;
#endif
}

static int raw_fresh_at(void *p, size_t n)
{
	long flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;

	return raw(SYS_mmap, (long)p, n, PROT_READ | PROT_WRITE, flags, -1, 0) == (long)p ? 0 : -EEXIST;
}

int raw_munmap(void *p, size_t n)
{
	long failed = raw(SYS_munmap, (long)p, n, 0, 0, 0, 0);
	return failed ? failed : raw_fresh_at(p, n);
}

int raw_mapfixed(void *p, size_t n)
{
	long flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;

	return raw(SYS_mmap, (long)p, n, PROT_READ | PROT_WRITE, flags, -1, 0) == (long)p ? 0 : -ENOMEM;
}

int raw_mremap_away(void *p, size_t n)
{
	long to = raw(SYS_mmap, 0, n, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return raw(SYS_mremap, (long)p, n, n, MREMAP_MAYMOVE | MREMAP_FIXED, to, 0) == to ? raw_fresh_at(p, n) : -ENOMEM;
}

int raw_dontneed(void *p, size_t n) { return raw(SYS_madvise, (long)p, n, MADV_DONTNEED, 0, 0, 0); }

#ifdef __x86_64__
void *low_memory(size_t n)
{
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	return p == MAP_FAILED ? NULL : p;
}

static long compat_call(long nr, long a, long b)
{
	long r;
	__asm__ volatile("int $0x80" : "=a"(r) : "a"(nr), "b"(a), "c"(b) : "memory", "r8", "r9", "r10", "r11");
	return r;
}

int compat_munmap(void *p, size_t n)
{
	pid_t probe = fork(); /* a kernel without 32-bit calls kills it */
	int status;
	if (!probe)
		_exit(compat_call(20 /* getpid */, 0, 0) == getpid() ? 0 : 1);
	if (waitpid(probe, &status, 0) < 0 || status)
		return -ENOSYS;
	if (compat_call(91 /* munmap */, (long)p, (long)n))
		return -EINVAL;
	return fresh_at(p, n);
}
#else /* a 64-bit process has no way into 32-bit calls, nor mmap a flag for where they reach */
void *low_memory(size_t n) { (void)n; return NULL; }
int compat_munmap(void *p, size_t n) { (void)p; (void)n; return -ENOSYS; }
#endif

void *break_memory(size_t n)
{
	unsigned long now = (unsigned long)sbrk(0), start = (now + 4095) & ~4095UL;
	return sbrk(start + n - now) == (void *)now ? (void *)start : NULL;
}

int break_shrink(void *p, size_t n)
{
	return sbrk(-(intptr_t)n) == (char *)p + n && sbrk(n) == p ? 0 : -ENOMEM;
}

static void *whole_pages(char *block) { return block ? (void *)(((uintptr_t)block + 4095) & ~4095UL) : NULL; }

static char *block; /* what malloc returned for the range below */

enum { LARGE = 1 << 20 }; /* more than any arena has left, so that it is mapped by itself */

void *large_block(size_t n)
{
	mallopt(M_MMAP_THRESHOLD, LARGE / 2);
	block = malloc(LARGE + n);
	return whole_pages(block);
}

int large_block_free(void *p, size_t n)
{
	free(block);
	block = malloc(LARGE + n);
	return whole_pages(block) == p ? 0 : -EAGAIN;
}

void *heap_block(size_t n)
{
	mallopt(M_MMAP_THRESHOLD, 1 << 30);
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	block = malloc(n + 8192);
	if (!malloc(n)) /* keeps the block from being the end of its arena, which is trimmed in another way */
		return NULL;
	return whole_pages(block);
}

int heap_trim(void *p, size_t n)
{
	free(block);
	malloc_trim(0);
	block = malloc(n + 8192);
	return whole_pages(block) == p ? 0 : -EAGAIN;
}

int fork_parent_writes(void *p, size_t n)
{
	pid_t child = fork();
	if (!child) { /* shares the pages until the parent is gone */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close_range(0, ~0U, 0);
		sleep(30);
		_exit(0);
	}
	return child < 0 ? -errno : 0;
}

static int await(pid_t child)
{
	int status;
	if (child < 0 || waitpid(child, &status, 0) < 0)
		return -errno;
	return status ? -ECHILD : 0;
}

int fork_child_writes(void *p, size_t n)
{
	pid_t child = fork();
	if (!child) {
		memset(p, 'K', n);
		_exit(0);
	}
	return await(child);
}

int other_process(enum other what, void *p, size_t n, int fd)
{
	pid_t child = fork();
	if (!child) {
		int failed = 0;
		switch (what) {
		case OTHER_TRUNCATE: failed = ftruncate(fd, 0) || ftruncate(fd, n); break;
		case OTHER_PUNCH: failed = fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, n); break;
		case OTHER_REMOVE: failed = madvise(p, n, MADV_REMOVE); break;
		}
		_exit(failed ? 1 : 0);
	}
	return await(child);
}

int uring_op(int op, int fd, unsigned long long off, void *addr, unsigned len, unsigned advice)
{
	struct io_uring_params params = {0};
	int ring = syscall(SYS_io_uring_setup, 2, &params);
	if (ring < 0)
		return -errno;
	size_t queue = params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe);
	char *q = mmap(NULL, queue, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring, IORING_OFF_SQ_RING);
	struct io_uring_sqe *sqe = mmap(NULL, params.sq_entries * sizeof(*sqe), PROT_READ | PROT_WRITE,
					MAP_SHARED | MAP_POPULATE, ring, IORING_OFF_SQES);
	if (q == MAP_FAILED || (void *)sqe == MAP_FAILED)
		return -errno;
	*sqe = (struct io_uring_sqe){ .opcode = op, .fd = fd, .off = off, .addr = (unsigned long)addr, .len = len,
		.fadvise_advice = advice };
	((unsigned *)(q + params.sq_off.array))[0] = 0;
	__atomic_store_n((unsigned *)(q + params.sq_off.tail), 1, __ATOMIC_RELEASE);
	if (syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) < 0)
		return -errno;
	int res = ((struct io_uring_cqe *)(q + params.cq_off.cqes))->res;
	close(ring);
	return res;
}

/* <linux/userfaultfd.h>, Linux 6.8; not in older headers. */
struct move { uint64_t dst, src, len, mode; int64_t moved; };
#define UFFDIO_MOVE_ _IOWR(UFFDIO, 0x05, struct move)

int uffd_move(void *p, size_t n)
{
	char *to = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC | 1 /* UFFD_USER_MODE_ONLY */);
	struct uffdio_api api = { .api = UFFD_API, .features = 1 << 16 /* UFFD_FEATURE_MOVE */ };
	struct uffdio_register reg = { .range = { (unsigned long)to, n }, .mode = UFFDIO_REGISTER_MODE_MISSING };
	struct move mv = { .dst = (unsigned long)to, .src = (unsigned long)p, .len = n };
	if (to == MAP_FAILED || fd < 0 || ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &reg))
		return -errno;
	int failed = ioctl(fd, UFFDIO_MOVE_, &mv) ? errno : 0;
	close(fd);
	return failed == EBUSY ? 0 : -failed; /* the kernel declines for pinned pages */
}

static pthread_t thread;
static sem_t ready, leave;
static void *stack_range;

static void *on_stack(void *size)
{
	char *area = alloca((size_t)size + 8192);
	stack_range = whole_pages(area);
	memset(stack_range, 'A', (size_t)size);
	sem_post(&ready);
	sem_wait(&leave);
	return NULL;
}

void *thread_stack(size_t n)
{
	pthread_attr_t attr;
	sem_init(&ready, 0, 0);
	sem_init(&leave, 0, 0);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 64 << 20); /* more than glibc keeps for later threads */
	if (pthread_create(&thread, &attr, on_stack, (void *)n))
		return NULL;
	sem_wait(&ready);
	return stack_range;
}

int thread_exit(void *p, size_t n)
{
	sem_post(&leave);
	pthread_join(thread, NULL);
	return fresh_at(p, n);
}

struct range { void *p; size_t n; };
static int unmap_range(void *v)
{
	struct range *r = v;
	_exit(munmap(r->p, r->n) ? 1 : 0);
}

int vfork_munmap(void *p, size_t n)
{
	static char stack[65536] __attribute__((aligned(16)));
	struct range r = { p, n };
	pid_t child = clone(unmap_range, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD, &r);
	int failed = await(child);
	return failed ? failed : fresh_at(p, n);
}
