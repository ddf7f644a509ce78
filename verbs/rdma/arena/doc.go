// Package arena gives programs memory to hand to a device: outside the Go
// heap, page-aligned, and at addresses whose mapping does not change.
//
// A registration pins pages, not addresses. If the mapping changes under it,
// the device keeps using the old pages. Go-heap memory must therefore never be registered (the runtime discards and
// reuses pages by itself), and memory of the C library only under a watch. An arena is mapped once and sealed with
// mseal(2), Linux 6.10: munmap, mremap, mprotect and MAP_FIXED over it fail with EPERM, in the program's own code, in C
// and in the Go runtime alike. On older kernels it is an ordinary mapping that nobody else has a reason to touch.
//
// # Ownership
//
// Buffers belong to their allocator until freed, and must be deregistered
// before that. The garbage collector knows nothing of them: a forgotten buffer
// is lost, and a pointer into the Go heap stored in one is invisible to it.
//
// # Caveats
//
// A seal can't be undone: Close gives back a sealed arena's pages, but not its
// addresses. Make few arenas, and long-lived ones. Sealing does not prevent
// madvise(MADV_DONTNEED) of writable memory, which nobody calls by accident.
package arena
