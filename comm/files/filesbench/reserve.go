package filesbench

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// reserve is memory that is held between copies, and given back for each of them to write into. In a virtual machine,
// the host takes back what is free for some seconds, and then gives it again page by page: 1 GiB takes 0.35 s of a
// processor to write, and up to 5 s after that, which one way of copying would pay and another would not.
//
// It is mapped memory, although a page of it takes as long as 20 us in such a machine. A file in memory is written in a
// tenth of the time; but of the copies after it, one in six still took two to four times as long.
type reserve struct {
	bytes  int64
	memory []byte
}

// aside is about what a copy needs beside its destination: windows, buffers and processes.
const aside = 64 << 20 // 64 MiB

// take takes the memory, and writes to each page of it.
func (r *reserve) take() (err error) {
	r.memory, err = unix.Mmap(-1, 0, int(r.bytes), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return fmt.Errorf("mmap of %d bytes: %w", r.bytes, err)
	}
	// The pages are as small as those of files. It fails for a kernel that knows no others.
	_ = unix.Madvise(r.memory, unix.MADV_NOHUGEPAGE)
	for at := 0; at < len(r.memory); at += os.Getpagesize() {
		r.memory[at] = 1
	}
	return nil
}

// give gives the memory back, if it is there.
func (r *reserve) give() error {
	if r.memory == nil {
		return nil
	}
	err := unix.Munmap(r.memory)
	r.memory = nil
	return err
}
