//go:build fabric

package main

import (
	"cmp"
	"strings"
	"time"

	"pinwheel/internal/change"
	"pinwheel/lab/bench/fabric"
	"pinwheel/mem"
	"pinwheel/verbs"
)

// libfabricCache is the cache of libfabric, and the link that uses it. It sends and receives through what was acquired last.
type libfabricCache struct {
	c       *fabric.Cache
	monitor string
	current *fabric.Region
}

// openLibfabric opens it under one of its monitors, or under ours: pinwheel, or pinwheel:MECHANISM.
func openLibfabric(monitor string) (cache, link, func(), error) {
	name, mechanism, _ := strings.Cut(monitor, ":")
	c, err := fabric.Open(name, cmp.Or(mechanism, "auto"), pages*mem.PageSize)
	if err != nil {
		return nil, nil, nil, err
	}
	l := &libfabricCache{c: c, monitor: monitor}
	return l, l, c.Close, nil
}

func (l *libfabricCache) acquire(r mem.Range) (g verbs.Region, hit bool, release func(), err error) {
	l.current, hit, release, err = l.c.Acquire(r)
	return g, hit, release, err
}

func (l *libfabricCache) name() string { return nameOf(libfabric + l.monitor) }

func (l *libfabricCache) send(_ verbs.Region, r mem.Range) ([]byte, error) {
	return l.c.Far(r.Len()), l.c.Send(l.current, r)
}

func (l *libfabricCache) receive(_ verbs.Region, r mem.Range, data []byte) error {
	copy(l.c.Far(r.Len()), data)
	return l.c.Receive(l.current, r)
}

func (l *libfabricCache) close() {} // openLibfabric returns what closes it

// measureLibfabric times hits in C, which the path of a transport makes, and system calls while one range is cached.
func measureLibfabric(monitor string) ([]sample, error) {
	begin := time.Now()
	c, _, end, err := openLibfabric(monitor)
	if err != nil {
		return nil, err
	}
	defer end()
	opened := sample{"open libfabric", "ms", float64(time.Since(begin).Microseconds()) / 1000}
	s, err := change.Anonymous(pages)
	if err != nil {
		return nil, err
	}
	defer s.Free()
	hit := c.(*libfabricCache).c.Time(s.Range, 500_000)
	return []sample{opened, {"fi_mr_reg and fi_close of 64 KiB, again and again, in C", "ns", hit},
		{"mmap and munmap through libc of 64 KiB that isn't cached", "ns", mapAndUnmap(s.Range.Len())}}, nil
}
