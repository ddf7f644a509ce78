package main

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"pinwheel/mem"
	"pinwheel/verbs"
	"pinwheel/verbs/uring"
)

// device registers memory and moves bytes through registrations, without
// looking at what is mapped at their addresses.
type device interface {
	verbs.Provider
	// link makes a way to the other side, for transfers of n bytes by one goroutine.
	link(n uint64) (link, error)
}

type link interface {
	// send returns what arrives when r is sent through g; valid until the next call.
	send(g verbs.Region, r mem.Range) ([]byte, error)
	// receive lets data arrive in r through g.
	receive(g verbs.Region, r mem.Range, data []byte) error
	close()
}

// softverbs is the RDMA device of lab/testbed/softverbs, which the matrix puts into the way of its cells.
const softverbs = "softverbs"

func openDevice(name string) (device, error) {
	if name == "rdma" || name == softverbs {
		return openRDMA()
	}
	p, err := uring.Open(uring.Options{})
	return uringDevice{p}, err
}

// uringDevice moves bytes with io_uring's READ_FIXED and WRITE_FIXED, through a pipe.
type uringDevice struct{ *uring.Provider }

type pipeLink struct {
	p    uringDevice
	r, w *os.File
	buf  []byte
}

func (d uringDevice) link(n uint64) (link, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	l := &pipeLink{d, r, w, make([]byte, n)}
	if _, err := unix.FcntlInt(w.Fd(), unix.F_SETPIPE_SZ, int(n)); err != nil {
		l.close()
		return nil, fmt.Errorf("F_SETPIPE_SZ: %w", err)
	}
	return l, nil
}

func (l *pipeLink) send(g verbs.Region, r mem.Range) ([]byte, error) {
	if moved, err := l.p.WriteFixed(g, r.Start, int(r.Len()), int(l.w.Fd()), -1); err != nil || uint64(moved) != r.Len() {
		return nil, fmt.Errorf("sent %d bytes: %w", moved, err)
	}
	_, err := io.ReadFull(l.r, l.buf)
	return l.buf, err
}

func (l *pipeLink) receive(g verbs.Region, r mem.Range, data []byte) error {
	if _, err := l.w.Write(data); err != nil {
		return err
	}
	for at := r.Start; at < r.End; {
		moved, err := l.p.ReadFixed(g, at, int(r.End-at), int(l.r.Fd()), -1)
		if err != nil || moved == 0 {
			return fmt.Errorf("received %d bytes: %w", moved, err)
		}
		at += mem.Addr(moved)
	}
	return nil
}

func (l *pipeLink) close() {
	l.r.Close()
	l.w.Close()
}
