package main

import (
	"bytes"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"pinwheel/mem"
	"pinwheel/regcache"
	"pinwheel/verbs"
	"pinwheel/verbs/uring"
	"pinwheel/vmwatch"
	"pinwheel/vmwatch/internal/change"
)

// Verdicts of one cell.
const (
	detected  = "detected"   // cached; after the change registered anew, and the right bytes moved
	kept      = "kept"       // cached; after the change still a hit, and the right bytes moved
	notCached = "not cached" // never a hit
	stale     = "STALE"      // wrong bytes moved
)

// unwatched is a cache that nobody tells of changes: what the others are compared with.
const unwatched = "unwatched"

// peer is the cache of UCX.
const peer = "ucx"

// transferer moves bytes through a registration as a device would.
type transferer interface {
	verbs.Provider
	WriteFixed(g verbs.Region, addr mem.Addr, n, fd int, off int64) (int, error)
	ReadFixed(g verbs.Region, addr mem.Addr, n, fd int, off int64) (int, error)
}

// settle is how often a range is acquired before it counts as not cached: a
// page fault of the Go runtime costs the userfaultfd mechanism a hit.
const settle = 20

// cache is what is judged.
type cache interface {
	acquire(r mem.Range) (g verbs.Region, hit bool, release func(), err error)
	close()
}

// ours is the cache of this module, under one mechanism.
type ours struct {
	c *regcache.Cache
	w *vmwatch.Watcher // nil if unwatched
}

func newOurs(p verbs.Provider, mechanism string) (o ours, err error) {
	var options regcache.Options
	if mechanism != unwatched {
		if o.w, err = vmwatch.Open(vmwatch.Options{Mechanism: mechanism}); err != nil {
			return o, err
		}
		options.Watcher = o.w
	}
	o.c, err = regcache.New(p, options)
	return o, err
}

func (o ours) acquire(r mem.Range) (verbs.Region, bool, func(), error) {
	ref, outcome, err := o.c.Acquire(r, verbs.AccessLocalWrite)
	if err != nil {
		return verbs.Region{}, false, nil, err
	}
	return ref.Region(), outcome == regcache.Hit, func() { o.c.Release(ref) }, nil
}

func (o ours) close() {
	o.c.Close()
	if o.w != nil {
		o.w.Close()
	}
}

// judge caches a Subject of kind k, changes it, and tells from the bytes that
// then move whether the cache noticed.
func judge(mechanism string, k change.Kind) (string, error) {
	p, err := uring.Open(uring.Options{})
	if err != nil {
		return "", err
	}
	defer p.Close()
	var c cache
	if mechanism == peer {
		c, err = newPeer(p)
	} else {
		c, err = newOurs(p, mechanism)
	}
	if err != nil {
		return "", err
	}
	defer c.close()
	change.Syscall = throughLibc
	s, err := k.Make()
	if err != nil {
		return "", err
	}
	defer s.Free()
	s.Fill('A')
	cached := false
	for try := 0; try < settle && !cached; try++ {
		_, hit, release, err := c.acquire(s.Range)
		if err != nil {
			return "", err
		}
		release()
		cached = hit
	}
	if err := k.Do(s); err != nil {
		return "", err
	}
	g, hit, release, err := c.acquire(s.Range)
	if err != nil {
		return "", err
	}
	defer release()
	fresh, err := moves(p, g, s)
	switch {
	case err != nil:
		return "", err
	case !fresh:
		return stale, nil
	case hit:
		return kept, nil
	case cached:
		return detected, nil
	}
	return notCached, nil
}

// moves reports whether both directions of transfer through g reach the
// memory that the program sees.
func moves(p transferer, g verbs.Region, s *change.Subject) (bool, error) {
	n := int(s.Range.Len())
	r, w, err := os.Pipe()
	if err != nil {
		return false, err
	}
	defer r.Close()
	defer w.Close()
	if _, err := unix.FcntlInt(w.Fd(), unix.F_SETPIPE_SZ, n); err != nil {
		return false, fmt.Errorf("F_SETPIPE_SZ: %w", err)
	}
	s.Fill('B')
	if moved, err := p.WriteFixed(g, s.Range.Start, n, int(w.Fd()), -1); err != nil || moved != n {
		return false, fmt.Errorf("%d bytes sent: %w", moved, err)
	}
	got := make([]byte, n)
	if _, err := io.ReadFull(r, got); err != nil {
		return false, err
	}
	sent := bytes.Equal(got, s.Bytes())
	if _, err := w.Write(bytes.Repeat([]byte{'C'}, n)); err != nil {
		return false, err
	}
	for at := 0; at < n; {
		moved, err := p.ReadFixed(g, s.Range.Start+mem.Addr(at), n-at, int(r.Fd()), -1)
		if err != nil || moved == 0 {
			return false, fmt.Errorf("%d bytes received: %w", moved, err)
		}
		at += moved
	}
	return sent && len(bytes.Trim(s.Bytes(), "C")) == 0, nil
}
