// Changes of mappings that need C: those of libc itself, of other processes,
// and of other ways into the kernel. Each returns 0 or -errno, and leaves the
// range mapped and writable.
#ifndef STALE_CHANGES_H
#define STALE_CHANGES_H
#include <stddef.h>

enum other { OTHER_TRUNCATE, OTHER_PUNCH, OTHER_REMOVE };

// libc_call makes a system call through the libc function of that name, as a C
// program does; -1 and errno on failure.
long libc_call(long nr, long a, long b, long c, long d, long e, long f);
int raw_munmap(void *p, size_t n);              // past libc, as Go's runtime does
int raw_mapfixed(void *p, size_t n);
int raw_mremap_away(void *p, size_t n);
int raw_dontneed(void *p, size_t n);
int compat_munmap(void *p, size_t n);           // int 0x80
void *low_memory(size_t n);                     // below 4 GiB
void *break_memory(size_t n);                   // at the program break
int break_shrink(void *p, size_t n);
void *large_block(size_t n);                    // malloc that mmaps
int large_block_free(void *p, size_t n);
void *heap_block(size_t n);                     // malloc from the heap's top
int heap_trim(void *p, size_t n);
int fork_parent_writes(void *p, size_t n);      // the child lives on, the parent writes
int fork_child_writes(void *p, size_t n);
int other_process(enum other what, void *p, size_t n, int fd);
int uring_op(int op, int fd, unsigned long long off, void *addr, unsigned len, unsigned advice);
int uffd_move(void *p, size_t n);               // UFFDIO_MOVE away
void *thread_stack(size_t n);                   // on the stack of a running thread
int thread_exit(void *p, size_t n);
int vfork_munmap(void *p, size_t n);            // by a child that shares the address space
// mpi_start initialises Open MPI in this process; -ENOTSUP if that didn't patch munmap.
int mpi_start(void);
void mpi_end(void);

// malloc_churn allocates, touches and frees 32 KiB to 2 MiB for so long; it returns how often.
long malloc_churn(long ns);
void *malloc_pages(size_t n);                   // whole pages of a malloc block, never freed
#endif
