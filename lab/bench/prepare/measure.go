package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"pinwheel"
	"pinwheel/internal/machine"
	"pinwheel/internal/measure"
	"pinwheel/lab/kit"
	"pinwheel/mem"
	"pinwheel/verbs"
)

// runs has what was measured so far.
type runs struct {
	kit.Log[kit.Head, row]
}

// has reports whether a row was measured, whatever came of it.
func (r *runs) has(m row) bool {
	return slices.ContainsFunc(r.Lines, func(l row) bool {
		return l.Device == m.Device && l.Huge == m.Huge && l.Bytes == m.Bytes && l.Way == m.Way && l.Round == m.Round
	})
}

// row is one measurement.
type row struct {
	Device string `json:"device"`
	Huge   bool   `json:"huge"` // transparent huge pages, else pages of 4 KiB
	Bytes  int64  `json:"bytes"`
	Way    string `json:"way"`
	Round  int    `json:"round"`

	WallNs     int64   `json:"wall_ns"`
	CPUNs      int64   `json:"cpu_ns"`                // of all threads of the process
	Threads    int     `json:"threads,omitempty"`     // of Prepare
	PrefaultNs int64   `json:"prefault_ns,omitempty"` // of it
	HugeBytes  int64   `json:"huge_bytes"`            // in huge pages, afterwards
	Others     float64 `json:"others"`                // processors that other processes used meanwhile, on average
}

const access = verbs.AccessLocalWrite | verbs.AccessRemoteWrite | verbs.AccessRemoteRead

// way is how a pool is registered. touched pools have their pages before the time begins.
type way struct {
	name    string
	touched bool
	do      func(m *pinwheel.Manager, th *pinwheel.Thread, pool mem.Range, r *row) error
}

var ways = []way{
	{"untouched", false, register},
	{"touched", true, register},
	{"1 thread", false, prepareWith(1)},
	{"all threads", false, prepareWith(runtime.NumCPU())},
}

// register registers a pool as a first use does.
func register(_ *pinwheel.Manager, th *pinwheel.Thread, pool mem.Range, _ *row) error {
	var use pinwheel.Use
	if err := th.Acquire(&use, pool, access, 0, nil); err != nil {
		return err
	}
	th.Release(&use)
	return nil
}

func prepareWith(threads int) func(*pinwheel.Manager, *pinwheel.Thread, mem.Range, *row) error {
	return func(m *pinwheel.Manager, _ *pinwheel.Thread, pool mem.Range, r *row) error {
		p, err := m.Prepare(context.Background(), pool, access, pinwheel.PrepareOptions{Threads: threads})
		r.Threads, r.PrefaultNs = p.Threads, p.PrefaultNs
		return err
	}
}

// mapPool maps a pool, and touches it if it should be.
func mapPool(bytes int64, huge, touched bool) (pool mem.Range, unmap func() error, err error) {
	b, err := unix.Mmap(-1, 0, int(bytes)+hugePage, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return pool, nil, err
	}
	unmap = func() error { return unix.Munmap(b) }
	start := (mem.RangeOf(b).Start + hugePage - 1) &^ (hugePage - 1)
	pool = mem.Range{Start: start, End: start + mem.Addr(bytes)}
	advice := unix.MADV_NOHUGEPAGE
	if huge {
		advice = unix.MADV_HUGEPAGE
	}
	err = unix.Madvise(pool.Bytes(), advice)
	if err == nil && touched {
		err = unix.Madvise(pool.Bytes(), unix.MADV_POPULATE_WRITE)
	}
	if err != nil {
		return pool, nil, errors.Join(fmt.Errorf("madvise: %w", err), unmap())
	}
	return pool, unmap, nil
}

// twice measures a row twice, and the second time counts. The host of a virtual machine provides memory, too, when it
// is touched first, and takes it back when it is free for some time: what that costs is no matter of ours. It takes the
// same way to get the same memory again: the kernel takes pages from another place for who pins them at once.
func twice(r row, w way) (row, error) {
	if _, err := once(r, w); err != nil {
		return r, err
	}
	return once(r, w)
}

// once measures a row. The Manager is opened before and closed after the time that counts.
func once(r row, w way) (_ row, err error) {
	pool, unmap, err := mapPool(r.Bytes, r.Huge, w.touched)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, unmap()) }()
	// Without a helper, and without a limit but the kernel's.
	m, err := pinwheel.New(pinwheel.Options{Policy: pinwheel.LeavePinned, ProviderName: r.Device, BudgetBytes: mem.Unlimited})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	th, err := m.Thread()
	if err != nil {
		return r, err
	}
	defer th.Close()
	began, busy, all := time.Now(), measure.ProcessorTime(), measure.MachineTime()
	if err := w.do(m, th, pool, &r); err != nil {
		return r, err
	}
	r.WallNs, r.CPUNs = int64(time.Since(began)), int64(measure.ProcessorTime()-busy)
	r.Others = max(0, float64(int64(measure.MachineTime()-all)-r.CPUNs)/float64(r.WallNs))
	r.HugeBytes, err = machine.Bytes(os.DirFS("/"), "proc/self/smaps_rollup", "AnonHugePages")
	return r, err
}

const hugePage = 2 << 20

// others returns how many processors are used by others, as long as this process sleeps.
func others(d time.Duration) float64 {
	before, began := measure.MachineTime(), time.Now()
	time.Sleep(d)
	return float64(measure.MachineTime()-before) / float64(time.Since(began))
}
