package main

// #include "changes.h"
import "C"

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"pinwheel/internal/change"
	"pinwheel/mem"
	"pinwheel/vmwatch"
)

type measureCmd struct {
	Mechanism string `arg:""`
	Allocator string `arg:""`
}

// Run measures in this process: everything under glibc, else only what depends on the allocator.
func (c measureCmd) Run() error {
	if monitor, ok := strings.CutPrefix(c.Mechanism, libfabric); ok {
		samples, err := measureLibfabric(monitor)
		if err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(samples)
	}
	p, err := openDevice("io_uring")
	if err != nil {
		return err
	}
	defer p.Close()
	var cc cache
	generation := func() uint64 { return 0 }
	var samples []sample
	if c.Mechanism == peer {
		cc, err = newPeer(p)
	} else {
		begin := time.Now()
		var o ours
		o, err = newOurs(p, c.Mechanism)
		cc = o
		if err == nil && o.w != nil {
			generation = o.w.Generation
			if c.Allocator == "glibc" {
				samples = append(samples, sample{"open and self-test", "ms", float64(time.Since(begin).Microseconds()) / 1000},
					sample{theCheck, "ns", checks(o.w)})
			}
		}
	}
	if err != nil {
		return err
	}
	defer cc.close()
	if c.Allocator == "glibc" {
		more, err := calls(cc)
		if err != nil {
			return err
		}
		samples = append(samples, more...)
		if o, ok := cc.(ours); ok {
			if more, err = registrations(o); err != nil {
				return err
			}
			samples = append(samples, more...)
		}
		if c.Mechanism != peer && c.Mechanism != unwatched {
			if more, err = beside(c.Mechanism); err != nil {
				return err
			}
			samples = append(samples, more...)
		}
		if more, err = goChurn(cc, generation); err != nil {
			return err
		}
		samples = append(samples, more...)
	}
	more, err := mallocChurn(cc, c.Allocator, generation)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(append(samples, more...))
}

// Costs that the command paper looks for.
const (
	theCheck  = "check: the generation is what it was"
	theHit    = "hit and release, 64 KiB"
	unrelated = "getppid: an unrelated call"
)

var unrelatedBeside = fmt.Sprintf("getppid, %d neighbours watching", neighbours)

// checks times the comparison on the send path of a transport.
func checks(w *vmwatch.Watcher) float64 {
	seen := w.Generation()
	changed := 0
	ns := perCall(20_000_000, func(n int) {
		for range n {
			if w.Generation() != seen {
				changed++
			}
		}
	})
	runtime.KeepAlive(changed)
	return ns
}

// perCall runs f(n) and returns nanoseconds per iteration.
func perCall(n int, f func(n int)) float64 {
	begin := time.Now()
	f(n)
	return float64(time.Since(begin).Nanoseconds()) / float64(n)
}

// calls times hits and system calls while one range is cached.
func calls(c cache) (samples []sample, err error) {
	s, err := change.Anonymous(pages)
	if err != nil {
		return nil, err
	}
	defer s.Free()
	if err := use(c, s.Range, settle); err != nil {
		return nil, err
	}
	samples = append(samples,
		sample{theHit, "ns", perCall(20_000, func(n int) { err = use(c, s.Range, n) })})
	samples = append(samples, sample{unrelated, "ns", unrelatedCall()})
	samples = append(samples,
		sample{"mmap and munmap through libc of 64 KiB that isn't cached", "ns", mapAndUnmap(s.Range.Len())})
	samples = append(samples,
		sample{"MADV_DONTNEED through libc of 64 KiB that is cached", "ns", perCall(2_000, func(n int) {
			for range n {
				throughLibc(unix.SYS_MADVISE, uintptr(s.Range.Start), uintptr(s.Range.Len()), unix.MADV_DONTNEED, 0, 0, 0)
			}
		})})
	return samples, err
}

// registeredSizes are those of the ranges that registrations has.
var registeredSizes = []uint64{64 << 10, 1 << 20, 4 << 20} // what a normal user may pin

func registrationOf(n uint64) string { return "miss: register and deregister " + mem.FormatBytes(n) }

// registrations times misses: a range is watched and registered, and then deregistered and no longer watched.
func registrations(o ours) (samples []sample, err error) {
	for _, n := range registeredSizes {
		s, err := change.Anonymous(n / mem.PageSize)
		if err != nil {
			return nil, err
		}
		defer s.Free()
		miss := func(times int) {
			for i := 0; i < times && err == nil; i++ {
				if err = use(o, s.Range, 1); err == nil {
					err = o.c.Invalidate(s.Range)
				}
			}
		}
		miss(1) // touches the pages
		ns := perCall(int(64<<20/n), miss)
		if err != nil {
			return nil, err
		}
		samples = append(samples, sample{registrationOf(n), "ns", ns})
	}
	return samples, nil
}

// neighbours is how many other processes of the node watch themselves, too.
const neighbours = 8

// beside times the same calls while neighbours watch: BPF programs run for every process.
func beside(mechanism string) (samples []sample, err error) {
	for range neighbours {
		cmd := exec.Command("/proc/self/exe", "hold", mechanism)
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		ready, err := cmd.StdoutPipe()
		if err != nil {
			return nil, err
		}
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		defer func() {
			// It does nothing but hold: no need to ask it to end.
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}()
		if _, err := ready.Read(make([]byte, 1)); err != nil {
			return nil, fmt.Errorf("neighbour: %w", err)
		}
	}
	return []sample{
		{unrelatedBeside, "ns", unrelatedCall()},
		{fmt.Sprintf("mmap and munmap, %d neighbours watching", neighbours), "ns", mapAndUnmap(pages * mem.PageSize)},
	}, nil
}

type holdCmd struct {
	Mechanism string `arg:""`
}

// Run holds a watch until it is killed.
func (c holdCmd) Run() error {
	w, err := watchBy(c.Mechanism)
	if err != nil {
		return err
	}
	fmt.Println("watching", w.Mechanism())
	select {}
}

func unrelatedCall() float64 {
	return perCall(200_000, func(n int) {
		for range n {
			unix.RawSyscall(unix.SYS_GETPPID, 0, 0, 0)
		}
	})
}

func mapAndUnmap(bytes uint64) float64 {
	return perCall(20_000, func(n int) {
		for range n {
			p, _, _ := throughLibc(unix.SYS_MMAP, 0, uintptr(bytes), unix.PROT_READ|unix.PROT_WRITE,
				unix.MAP_PRIVATE|unix.MAP_ANON, ^uintptr(0), 0)
			throughLibc(unix.SYS_MUNMAP, p, uintptr(bytes), 0, 0, 0, 0)
		}
	})
}

// churnTime is how long a churn runs.
const churnTime = 300 * time.Millisecond

// use acquires and releases r.
func use(c cache, r mem.Range, times int) error {
	for range times {
		_, _, release, err := c.acquire(r)
		if err != nil {
			return err
		}
		release()
	}
	return nil
}

// goChurn makes and drops Go objects, with a collection every 64, while one
// object of the same heap is cached.
func goChurn(c cache, generation func() uint64) ([]sample, error) {
	s, err := goHeap(pages)
	if err != nil {
		return nil, err
	}
	debug.SetGCPercent(100)
	if err := use(c, s.Range, settle); err != nil {
		return nil, err
	}
	defer func() { heapObject = nil }()
	before, rounds := generation(), 0
	var keep [16][]byte
	begin := time.Now()
	for ; time.Since(begin) < churnTime; rounds++ {
		keep[rounds%len(keep)] = make([]byte, 1<<20)
		if rounds%64 == 0 {
			runtime.GC()
		}
	}
	seconds := time.Since(begin).Seconds()
	return []sample{
		{"Go heap churn: MiB allocated", "/s", float64(rounds) / seconds},
		{"Go heap churn: events", "/s", float64(generation()-before) / seconds},
	}, nil
}

// mallocChurn does the same with C's malloc while one of its blocks is cached.
func mallocChurn(c cache, allocator string, generation func() uint64) ([]sample, error) {
	name := allocator[strings.LastIndexByte(allocator, '/')+1:]
	name, _, _ = strings.Cut(name, ".so")
	s, err := memory(func(n C.size_t) unsafe.Pointer { return C.malloc_pages(n) })(pages)
	if err != nil {
		return nil, err
	}
	if err := use(c, s.Range, settle); err != nil {
		return nil, err
	}
	before := generation()
	rounds := float64(C.malloc_churn(C.long(churnTime.Nanoseconds())))
	return []sample{
		{name + " churn: blocks", "/s", rounds / churnTime.Seconds()},
		{name + " churn: events", "/s", float64(generation()-before) / churnTime.Seconds()},
	}, nil
}
