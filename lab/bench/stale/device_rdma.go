package main

import (
	"context"
	"errors"
	"net"
	"time"

	"golang.org/x/sys/unix"

	"pinwheel/mem"
	"pinwheel/verbs"
	"pinwheel/verbs/rdma"
	"pinwheel/verbs/rdma/rc"
)

// rdmaDevice moves bytes with RDMA write and read to memory of a second
// protection domain of the same device.
type rdmaDevice struct {
	*rdma.Provider
	peer *rdma.Provider
}

// rdmaTime bounds what a device that works does at once.
const rdmaTime = 20 * time.Second

func openRDMA() (device, error) {
	p, err := rdma.Open(rdma.Options{})
	if err != nil {
		return nil, err
	}
	peer, err := rdma.Open(rdma.Options{})
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return rdmaDevice{p, peer}, nil
}

func (d rdmaDevice) Close() error { return errors.Join(d.Provider.Close(), d.peer.Close()) }

type rdmaLink struct {
	near, far *rc.Conn
	memory    []byte // of the far side
	remote    rc.Remote
}

func (d rdmaDevice) link(n uint64) (link, error) {
	ctx, cancel := context.WithTimeout(context.Background(), rdmaTime)
	defer cancel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer listener.Close()
	l := &rdmaLink{}
	far := make(chan error)
	go func() {
		sock, err := listener.Accept()
		if err == nil {
			l.far, err = rc.Connect(ctx, sock, d.peer, rc.Options{})
		}
		far <- err
	}()
	sock, err := net.Dial("tcp", listener.Addr().String())
	if err == nil {
		l.near, err = rc.Connect(ctx, sock, d.Provider, rc.Options{})
	}
	if err := errors.Join(err, <-far); err != nil {
		return nil, err
	}
	if l.memory, err = unix.Mmap(-1, 0, int(n), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANON); err != nil {
		return nil, err
	}
	start := mem.RangeOf(l.memory).Start
	g, err := d.peer.Register(mem.Range{Start: start, End: start + mem.Addr(n)},
		verbs.AccessLocalWrite|verbs.AccessRemoteWrite|verbs.AccessRemoteRead)
	l.remote = rc.Remote{Addr: uint64(start), RKey: g.RKey}
	return l, err
}

func (l *rdmaLink) send(g verbs.Region, r mem.Range) ([]byte, error) {
	return l.memory, l.finish(l.near.Write(1, rc.Local{Range: r, LKey: g.LKey}, l.remote))
}

func (l *rdmaLink) receive(g verbs.Region, r mem.Range, data []byte) error {
	copy(l.memory, data)
	return l.finish(l.near.Read(2, rc.Local{Range: r, LKey: g.LKey}, l.remote))
}

func (l *rdmaLink) finish(posted error) error {
	if posted != nil {
		return posted
	}
	ctx, cancel := context.WithTimeout(context.Background(), rdmaTime)
	defer cancel()
	var done [1]rc.Completion
	if _, err := l.near.Wait(ctx, done[:]); err != nil {
		return err
	}
	return done[0].Err()
}

func (l *rdmaLink) close() {
	l.near.Close()
	l.far.Close()
}
