package main

import (
	"bytes"

	"pinwheel/internal/change"
	"pinwheel/mem"
	"pinwheel/regcache"
	"pinwheel/verbs"
	"pinwheel/vmwatch"
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

// settle is how often a range is acquired before it counts as not cached: a
// page fault of the Go runtime costs the userfaultfd mechanism a hit.
const settle = 20

// cache is what is judged.
type cache interface {
	acquire(r mem.Range) (g verbs.Region, hit bool, release func(), err error)
	name() string
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
		if o.w, err = watchBy(mechanism); err != nil {
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

func (o ours) name() string {
	if o.w == nil {
		return unwatched
	}
	return o.w.Report().How()
}

func (o ours) close() {
	o.c.Close()
	if o.w != nil {
		o.w.Close()
	}
}

// judge caches a Subject of kind k, changes it, and tells from the bytes that
// then move whether the cache noticed; and which mechanism was chosen.
func judge(deviceName, mechanism string, k change.Kind) (verdict, chosen string, err error) {
	p, err := openDevice(deviceName)
	if err != nil {
		return "", "", err
	}
	defer p.Close()
	var c cache
	if mechanism == peer {
		c, err = newPeer(p)
	} else {
		c, err = newOurs(p, mechanism)
	}
	if err != nil {
		return "", "", err
	}
	defer c.close()
	l, err := p.link(pages * mem.PageSize)
	if err != nil {
		return "", "", err
	}
	defer l.close()
	change.Syscall = throughLibc
	s, err := k.Make(pages)
	if err != nil {
		return "", "", err
	}
	defer s.Free()
	s.Fill('A')
	cached := false
	for try := 0; try < settle && !cached; try++ {
		_, hit, release, err := c.acquire(s.Range)
		if err != nil {
			return "", "", err
		}
		release()
		cached = hit
	}
	if err := k.Do(s); err != nil {
		return "", "", err
	}
	g, hit, release, err := c.acquire(s.Range)
	if err != nil {
		return "", "", err
	}
	defer release()
	fresh, err := moves(l, g, s)
	switch {
	case err != nil:
		return "", "", err
	case !fresh:
		return stale, c.name(), nil
	case hit:
		return kept, c.name(), nil
	case cached:
		return detected, c.name(), nil
	}
	return notCached, c.name(), nil
}

// moves reports whether both directions of transfer through g reach the
// memory that the program sees.
func moves(l link, g verbs.Region, s *change.Subject) (bool, error) {
	s.Fill('B')
	got, err := l.send(g, s.Range)
	if err != nil {
		return false, err
	}
	sent := bytes.Equal(got, s.Bytes())
	data := bytes.Repeat([]byte{'C'}, len(got))
	if err := l.receive(g, s.Range, data); err != nil {
		return false, err
	}
	return sent && bytes.Equal(data, s.Bytes()), nil
}
