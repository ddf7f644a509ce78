package regcache

import "golang.org/x/sys/unix"

// populate makes the kernel provide the pages of m in one call instead of a fault for each; huge
// ones if m is as large. It may refuse (before Linux 5.14, or without huge pages): then
// faults do.
func populate(m []byte) {
	_ = unix.Madvise(m, unix.MADV_HUGEPAGE)
	_ = unix.Madvise(m, unix.MADV_POPULATE_WRITE)
}
