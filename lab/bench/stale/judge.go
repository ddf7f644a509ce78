package main

import (
	"bytes"
	"strings"

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
	hangs     = "HANGS"      // the program waits for ever
)

// unwatched is a cache that nobody tells of changes: what the others are compared with.
const unwatched = "unwatched"

// peer is the cache of UCX.
const peer = "ucx"

// libfabric before a memory monitor is libfabric's cache under that one.
const libfabric = "libfabric:"

// monitorOurs is the monitor of libpinwheel-watch.
const monitorOurs = "pinwheel"

// isTheirs reports whether a mechanism is not ours: what it misses is no failure.
func isTheirs(mechanism string) bool {
	return mechanism == peer || strings.HasPrefix(mechanism, libfabric) && !strings.HasPrefix(mechanism, libfabric+monitorOurs)
}

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

// nameOf is what the tables call a mechanism that can't say so itself.
func nameOf(mechanism string) string {
	if monitor, ok := strings.CutPrefix(mechanism, libfabric); ok {
		return "libfabric under " + strings.ReplaceAll(monitor, ":", " ")
	}
	return mechanism
}

// open opens what is judged: a cache, and what moves bytes through its registrations.
func open(deviceName, mechanism string) (c cache, l link, end func(), err error) {
	if monitor, ok := strings.CutPrefix(mechanism, libfabric); ok {
		return openLibfabric(monitor)
	}
	p, err := openDevice(deviceName)
	if err != nil {
		return nil, nil, nil, err
	}
	if mechanism == peer {
		c, err = newPeer(p)
	} else {
		c, err = newOurs(p, mechanism)
	}
	if err != nil {
		p.Close()
		return nil, nil, nil, err
	}
	if l, err = p.link(pages * mem.PageSize); err != nil {
		c.close()
		p.Close()
		return nil, nil, nil, err
	}
	return c, l, func() {
		l.close()
		c.close()
		p.Close()
	}, nil
}

// judge caches a Subject of kind k, changes it, and tells from the bytes that
// then move whether the cache noticed; and which mechanism was chosen.
func judge(deviceName, mechanism string, k change.Kind) (verdict, chosen string, err error) {
	c, l, end, err := open(deviceName, mechanism)
	if err != nil {
		return "", "", err
	}
	defer end()
	change.Syscall = throughLibc
	s, err := k.Make(pages)
	if err != nil {
		return "", "", err
	}
	// s ends with the process: after a change that failed, another thread may have its addresses.
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
