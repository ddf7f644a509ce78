package filesbench

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// reserve is memory that is held between copies, and given back for each of them to write into. In a virtual machine,
// the host takes back what is free for some seconds, and then gives it again page by page: 1 GiB takes 0.35 s of a
// processor to write, and up to 5 s after that, which one way of copying would pay and another would not.
type reserve struct {
	bytes int64
	file  *os.File // memory as files have it, which costs less to write than pages that are mapped
}

// aside is about what a copy needs beside its destination: windows, buffers and processes.
const aside = 64 << 20 // 64 MiB

// take takes the memory.
func (r *reserve) take() error {
	fd, err := unix.MemfdCreate("pinwheel-reserve", unix.MFD_CLOEXEC)
	if err != nil {
		return os.NewSyscallError("memfd_create", err)
	}
	r.file = os.NewFile(uintptr(fd), "reserve")
	if _, err = io.CopyN(r.file, zeros{}, r.bytes); err != nil {
		err = errors.Join(err, r.give())
	}
	return err
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

// give gives the memory back, if it is there.
func (r *reserve) give() error {
	if r.file == nil {
		return nil
	}
	err := r.file.Close()
	r.file = nil
	return err
}
