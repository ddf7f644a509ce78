// Command gopeer measures pinwheel's Go API; see ../peer.h for what it prints.
package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"sync"
	"time"

	"go.uber.org/atomic"
	"golang.org/x/sys/unix"

	"pinwheel/lab/bench/peers/noop"
	"pinwheel/mem"
	"pinwheel/regcache"
	"pinwheel/verbs"
)

const (
	base   = mem.Addr(0x7e00_0000_0000) // never dereferenced
	length = 65536                      // of a region
	stride = length + 4096              // between regions: neighbours never merge
	access = verbs.AccessLocalWrite | verbs.AccessRemoteWrite
)

var provider noop.Provider

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "gopeer:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("want a measurement")
	}
	var n [3]int
	for i, s := range args[1:] {
		v, err := strconv.Atoi(s)
		if err != nil || i >= len(n) {
			return fmt.Errorf("bad argument %q", s)
		}
		n[i] = v
	}
	c, err := regcache.New(&provider, regcache.Options{KnownRegions: 1 << 17})
	if err != nil {
		return err
	}
	f, err := c.Thread()
	if err != nil {
		return err
	}
	switch args[0] {
	case "stall":
		return stall(c, f)
	case "window":
		for i := range mem.Addr(1000) {
			use(f, mem.Range{Start: base + i*32768, End: base + i*32768 + 65536})
		}
		fmt.Println(provider.Bytes.Load())
		return nil
	}
	from := time.Now()
	for i := range n[0] {
		use(f, region(i))
	}
	switch args[0] {
	case "miss":
		fmt.Printf("%.1f\n", float64(time.Since(from))/float64(n[0]))
	case "hit":
		return hit(c, n[0], n[1], n[2])
	case "invalidate":
		from = time.Now()
		if err := c.Invalidate(mem.Range{Start: base, End: region(n[0]).Start}); err != nil {
			return err
		}
		use(f, region(0))
		fmt.Printf("%.1f\n", float64(time.Since(from))/float64(n[0]))
	}
	return nil
}

func region(i int) mem.Range {
	start := base + mem.Addr(i)*stride
	return mem.Range{Start: start, End: start + length}
}

func use(f *regcache.Local, r mem.Range) {
	ref, _, err := f.Acquire(r, access)
	if err != nil {
		panic(err)
	}
	f.Release(ref)
}

// chase gets and puts; where the next access goes depends on the last result.
func chase(f *regcache.Local, order []uint32, iterations int) {
	var dep mem.Addr
	for j := 0; iterations > 0; iterations-- {
		at := base + mem.Addr(order[j])*stride
		if j++; j == len(order) {
			j = 0
		}
		ref, _, err := f.Acquire(mem.Range{Start: at + dep, End: at + length}, access)
		if err != nil {
			panic(err)
		}
		dep = mem.Addr(ref.RKey() >> 31) // always 0
		f.Release(ref)
	}
}

func runOn(cpu int) {
	runtime.LockOSThread()
	var set unix.CPUSet
	set.Set(cpu % runtime.NumCPU())
	_ = unix.SchedSetaffinity(0, &set) // without it the figures are only noisier
}

// undisturbed keeps other programs from the processor, where that is permitted.
func undisturbed() {
	_ = unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}, 0)
}

func hit(c *regcache.Cache, n, threads, iterations int) error {
	var ready, done sync.WaitGroup
	ready.Add(threads)
	ns := make([]float64, threads)
	errs := make([]error, threads)
	for t := range threads {
		done.Go(func() {
			runOn(t)
			f, err := c.Thread()
			if errs[t] = err; err != nil {
				ready.Done()
				return
			}
			order := make([]uint32, n)
			for i, k := range rand.New(rand.NewPCG(77, uint64(t))).Perm(n) {
				order[i] = uint32(k)
			}
			chase(f, order, 2*n)
			ready.Done()
			ready.Wait()
			from := time.Now()
			chase(f, order, iterations)
			ns[t] = float64(time.Since(from)) / float64(iterations)
		})
	}
	done.Wait()
	var sum float64
	for t := range threads {
		if errs[t] != nil {
			return errs[t]
		}
		sum += ns[t]
	}
	fmt.Printf("%.3f\n", sum/float64(threads))
	return nil
}

type worst struct {
	ns       time.Duration
	above, n int
}

func (w *worst) note(d time.Duration) {
	w.n++
	if d > 10*time.Microsecond {
		w.above++
	}
	w.ns = max(w.ns, d)
}

func stall(c *regcache.Cache, f *regcache.Local) error {
	use(f, region(0))
	runOn(0)
	var stop atomic.Bool
	failed := make(chan error, 1)
	go func() {
		defer stop.Store(true)
		runOn(1)
		other, err := c.Thread()
		if err != nil {
			failed <- err
			return
		}
		provider.Delay.Store(int64(20 * time.Millisecond))
		for i := range 10 {
			use(other, region(i+1))
			time.Sleep(5 * time.Millisecond)
		}
		failed <- nil
	}()
	undisturbed()
	var hits, nothing worst
	for !stop.Load() {
		from := time.Now()
		use(f, region(0))
		a := time.Since(from)
		b := time.Since(from)
		hits.note(a)
		nothing.note(b - a)
	}
	fmt.Println(hits.ns.Nanoseconds(), hits.above, hits.n, nothing.ns.Nanoseconds(), nothing.above, nothing.n)
	return <-failed
}
