//go:build amd64 || arm64

package vmwatch

import (
	"golang.org/x/sys/unix"

	"pinwheel/internal/uffd"
)

const uffdFeatures = uffd.EventRemap | uffd.EventRemove | uffd.EventUnmap | uffd.WPUnpopulated | uffd.WPAsync

// <linux/userfaultfd.h>
const (
	uffdEventRemap  = 0x14
	uffdEventRemove = 0x15
	uffdEventUnmap  = 0x16
)

// uffdMsg is struct uffd_msg: for UNMAP and REMOVE a and b are start and end;
// for REMAP they are from and to, and c the length.
type uffdMsg struct {
	event   uint8
	_       [7]uint8
	a, b, c uint64
}

// pageFaults counts those of all threads of the process, of both kinds.
// Faults taken inside system calls, as in pinning, count too.
func pageFaults() int64 {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return -1
	}
	return u.Minflt + u.Majflt
}
