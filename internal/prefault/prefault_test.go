package prefault

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"go.uber.org/atomic"
	"golang.org/x/sys/unix"

	"pinwheel/internal/fault"
	"pinwheel/internal/machine"
	"pinwheel/internal/testtree"
	"pinwheel/internal/testwait"
	"pinwheel/mem"
	"pinwheel/placement"
	"pinwheel/verbs"
	"pinwheel/verbs/verbstest"
)

// ways are how pages are provided.
var ways = map[string]func(part) error{"populate": touch, "touch each page": func(p part) error {
	if errno := touchPages(p); errno != 0 {
		return explain(p, errno)
	}
	return nil
}}

// present returns how many pages of r the process has, as the kernel says.
func present(t *testing.T, r mem.Range) (n uint64) {
	t.Helper()
	f, err := os.Open("/proc/self/pagemap")
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	entries := make([]byte, 8*r.Pages())
	if _, err := f.ReadAt(entries, int64(uint64(r.Start)/mem.PageSize*8)); err != nil {
		t.Fatal(err)
	}
	for e := range slices.Chunk(entries, 8) {
		n += binary.LittleEndian.Uint64(e) >> 63
	}
	return n
}

func TestEveryPageIsThereAfterwardsAndNoDataHasChanged(t *testing.T) {
	const bytes = 3*sliceBytes + 12<<10
	for name, way := range ways {
		for _, write := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				testwait.Bound(t)
				b, r := verbstest.Map(t, bytes)
				for i := 0; i < bytes; i += bytes / 7 {
					b[i] = byte(i) | 1
				}
				before := present(t, r)
				threads, err := Run(t.Context(), r, Options{Write: write, Threads: 2, touch: way})
				if err != nil || threads < 1 {
					t.Fatalf("%d threads: %v", threads, err)
				}
				if n := present(t, r); n != r.Pages() || before >= n {
					t.Errorf("%d of %d pages are there, %d were", n, r.Pages(), before)
				}
				for i, v := range b {
					if want := byte(0); i%(bytes/7) == 0 && v != byte(i)|1 || i%(bytes/7) != 0 && v != want {
						t.Fatalf("byte %d is %d", i, v)
					}
				}
			})
		}
	}
}

// Other threads may use the memory meanwhile.
func TestWritersAreNotDisturbed(t *testing.T) {
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			testwait.Bound(t)
			b, r := verbstest.Map(t, 64*mem.PageSize)
			var stop atomic.Bool
			var wg sync.WaitGroup
			counts := make([]uint32, r.Pages())
			wg.Go(func() {
				for i := 0; !stop.Load(); i = (i + 1) % len(counts) {
					word := b[uint64(i)*mem.PageSize:]
					binary.NativeEndian.PutUint32(word, binary.NativeEndian.Uint32(word)+1)
					counts[i]++
				}
			})
			for range 200 {
				if _, err := Run(t.Context(), r, Options{Write: true, Threads: 1, touch: way}); err != nil {
					t.Error(err)
				}
			}
			stop.Store(true)
			wg.Wait()
			for i, n := range counts {
				if got := binary.NativeEndian.Uint32(b[uint64(i)*mem.PageSize:]); got != n {
					t.Errorf("page %d: %d, counted to %d", i, got, n)
				}
			}
		})
	}
}

// file maps n pages of a new file of pages, which may be fewer.
func file(t *testing.T, n, pages int, prot, flags int) mem.Range {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(int64(pages) * int64(mem.PageSize)); err != nil {
		t.Fatal(err)
	}
	b, err := unix.Mmap(int(f.Fd()), 0, n*int(mem.PageSize), prot, flags)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(b) })
	return mem.RangeOf(b)
}

func TestMemoryThatCannotBeUsedIsRefused(t *testing.T) {
	const pages = 16
	small := func(t *testing.T) mem.Range { _, r := verbstest.Map(t, pages*mem.PageSize); return r }
	for name, c := range map[string]struct {
		memory func(t *testing.T) mem.Range
		write  bool
		want   error
	}{
		"hole": {memory: func(t *testing.T) mem.Range {
			r := small(t)
			verbstest.Unmap(t, verbstest.Part(r, 4*mem.PageSize, mem.PageSize))
			return r
		}, want: verbs.ErrNotMapped},
		"end": {memory: func(t *testing.T) mem.Range {
			r := small(t)
			return mem.Range{Start: r.Start, End: r.End + mem.Addr(mem.PageSize)}
		}, want: verbs.ErrNotMapped},
		"protected": {memory: func(t *testing.T) mem.Range {
			r := small(t)
			if err := unix.Mprotect(r.Bytes(), unix.PROT_NONE); err != nil {
				t.Fatal(err)
			}
			return r
		}, want: verbs.ErrNotMapped},
		"read-only, for writing": {memory: func(t *testing.T) mem.Range { return file(t, pages, pages, unix.PROT_READ, unix.MAP_SHARED) }, write: true, want: verbs.ErrNotMapped},
		"read-only":              {memory: func(t *testing.T) mem.Range { return file(t, pages, pages, unix.PROT_READ, unix.MAP_SHARED) }},
		"private file": {memory: func(t *testing.T) mem.Range {
			return file(t, pages, pages, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE)
		}},
		"private file, for writing": {memory: func(t *testing.T) mem.Range {
			return file(t, pages, pages, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE)
		}, write: true},
		"file, for writing": {memory: func(t *testing.T) mem.Range {
			return file(t, pages, pages, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		}, write: true},
		"file shorter than mapped": {memory: func(t *testing.T) mem.Range { return file(t, pages, pages-1, unix.PROT_READ, unix.MAP_SHARED) }, want: verbs.ErrNotMapped},
		"short file, for writing": {memory: func(t *testing.T) mem.Range {
			return file(t, pages, pages-1, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE)
		}, write: true, want: verbs.ErrNotMapped},
		"read-only anonymous memory": {memory: func(t *testing.T) mem.Range { r := small(t); _ = unix.Mprotect(r.Bytes(), unix.PROT_READ); return r }},
	} {
		for by, way := range ways {
			t.Run(name+", "+by, func(t *testing.T) {
				testwait.Bound(t)
				r := c.memory(t)
				_, err := Run(t.Context(), r, Options{Write: c.write, touch: way})
				if !errors.Is(err, c.want) {
					t.Errorf("got %v, want %v", err, c.want)
				}
				if c.want == nil && present(t, r) != r.Pages() {
					t.Errorf("%d of %d pages are there", present(t, r), r.Pages())
				}
			})
		}
	}
}

// Memory that is unmapped by another thread is an error, and no signal.
func TestMemoryUnmappedMeanwhileIsAnError(t *testing.T) {
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			testwait.Bound(t)
			_, r := verbstest.Map(t, 4*sliceBytes)
			var touched atomic.Int64
			_, err := Run(t.Context(), r, Options{Write: true, Threads: 1, touch: func(p part) error {
				if touched.Add(1) == 2 {
					verbstest.Unmap(t, mem.Range{Start: p.End - mem.Addr(mem.PageSize), End: r.End})
				}
				return way(p)
			}})
			if !errors.Is(err, verbs.ErrNotMapped) || touched.Load() != 2 {
				t.Errorf("after %d parts: %v", touched.Load(), err)
			}
		})
	}
}

func TestRunEndsWithItsContextAndLeavesTheMemoryAlone(t *testing.T) {
	testwait.Bound(t)
	_, r := verbstest.Map(t, 8*sliceBytes)
	ctx, cancel := context.WithCancel(t.Context())
	begun, goOn := make(chan struct{}, 8), make(chan struct{})
	var inside, touched atomic.Int64
	result := make(chan error)
	go func() {
		_, err := Run(ctx, r, Options{Threads: 1, touch: func(part) error {
			inside.Inc()
			touched.Inc()
			begun <- struct{}{}
			<-goOn
			inside.Dec()
			return nil
		}})
		if inside.Load() != 0 {
			t.Error("a thread touches the memory after Run has returned")
		}
		result <- err
	}()
	<-begun
	cancel()
	select {
	case err := <-result:
		t.Error("it has not waited for what is under way:", err)
	case <-time.After(10 * time.Millisecond): // to catch it, if it does not
	}
	close(goOn)
	if err := <-result; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if n := touched.Load(); n == 8 {
		t.Error("all was touched nevertheless")
	}
	if threads, err := Run(ctx, r, Options{Threads: 1, touch: func(part) error { return nil }}); !errors.Is(err, context.Canceled) {
		t.Error("already cancelled:", threads, err)
	}
}

func TestProgressGrowsToTheWhole(t *testing.T) {
	testwait.Bound(t)
	_, r := verbstest.Map(t, 8*sliceBytes+mem.PageSize)
	var told []uint64
	_, err := Run(t.Context(), r, Options{Threads: 2, touch: func(part) error { return nil },
		Progress: func(n uint64) { told = append(told, n) }}) // by this goroutine, or the race detector would say so
	if err != nil || len(told) == 0 || !slices.IsSorted(told) || told[len(told)-1] != r.Len() {
		t.Errorf("%v, %v", told, err)
	}
}

func TestFirstErrorAndPanicsEndTheRun(t *testing.T) {
	testwait.Bound(t)
	_, r := verbstest.Map(t, 8*sliceBytes)
	broken := errors.New("broken")
	if _, err := Run(t.Context(), r, Options{Threads: 2, touch: func(part) error { return broken }}); !errors.Is(err, broken) {
		t.Error(err)
	}
	if _, err := Run(t.Context(), r, Options{Threads: 2, touch: func(part) error { panic("at the disco") }}); !errors.Is(err, fault.Err) {
		t.Error(err)
	}
}

// At no time do more threads work than there are processors in the mask, and each is bound within it.
func TestThreadsStayWithinTheAffinityMask(t *testing.T) {
	testwait.Bound(t)
	mask := placement.Affinity(0)
	if len(mask) == 0 {
		t.Fatal("no affinity")
	}
	_, r := verbstest.Map(t, 64*sliceBytes)
	for _, cpus := range [][]int{mask[:1], mask} {
		var now, most atomic.Int64
		threads, err := Run(t.Context(), r, Options{Threads: 1000, CPUs: cpus, CPU: cpus[0], touch: func(part) error {
			if n := now.Inc(); n > most.Load() {
				most.Store(n)
			}
			for _, cpu := range placement.Affinity(0) {
				if !slices.Contains(cpus, cpu) {
					t.Errorf("a thread may run on %d, the caller on %v", cpu, cpus)
				}
			}
			now.Dec()
			return nil
		}})
		if err != nil || threads > len(cpus) || int(most.Load()) > len(cpus) {
			t.Errorf("%d threads, %d at a time, on %v: %v", threads, most.Load(), cpus, err)
		}
	}
}

// twoProcessors is the root directory of a machine. Processor 1 is busy between two looks, or idle.
type twoProcessors struct {
	fstest.MapFS
	busy   bool
	looks  atomic.Int64
	looked chan struct{} // closed by the second look
}

func (m *twoProcessors) ReadFile(name string) ([]byte, error) {
	if name != "proc/stat" {
		return m.MapFS.ReadFile(name)
	}
	n := m.looks.Inc()
	if n == 2 {
		close(m.looked)
	}
	if m.busy {
		return fmt.Appendf(nil, "cpu0 %d 0 0 0\ncpu1 %d 0 0 0\n", 100*n, 100*n), nil
	}
	return fmt.Appendf(nil, "cpu0 %d 0 0 0\ncpu1 0 0 0 %d\n", 100*n, 100*n), nil
}

func TestBesideTheFirstThreadOnlyIdleProcessorsGetOne(t *testing.T) {
	for name, c := range map[string]struct {
		busy   bool
		claims []placement.Claim
		want   int
	}{
		"idle":             {want: 2},
		"busy":             {busy: true, want: 1},
		"another's helper": {claims: []placement.Claim{{Owner: placement.Owner{PID: int32(os.Getpid()) + 1}, CPU: 1}}, want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			testwait.Bound(t)
			m := &twoProcessors{MapFS: testtree.Parse(t, "sys/devices/system/cpu/online: 0-1\n"), busy: c.busy, looked: make(chan struct{})}
			_, r := verbstest.Map(t, 4*sliceBytes)
			both := make(chan struct{})
			var inside atomic.Int64
			threads, err := Run(t.Context(), r, Options{CPUs: []int{0, 1}, CPU: 0, root: m, lookTime: time.Nanosecond,
				claims: func() ([]placement.Claim, error) { return c.claims, nil },
				touch: func(part) error {
					<-m.looked
					if c.want == 1 {
						return nil
					}
					if inside.Inc() == 2 {
						close(both)
					}
					<-both
					return nil
				}})
			if err != nil || threads != c.want {
				t.Errorf("%d threads, want %d: %v", threads, c.want, err)
			}
		})
	}
}

func TestPartsKeepToMappingsAndHugePages(t *testing.T) {
	const mib = 1 << 20
	at := func(from, to mem.Addr) mem.Range { return mem.Range{Start: from * mib, End: to * mib} }
	all := []machine.Mapping{
		{Range: at(0, 2), Readable: true},
		{Range: at(10, 75), Readable: true, Writable: true},
		{Range: at(75, 80), Readable: true, Writable: true, Shared: true, Inode: 7},
		{Range: at(80, 90), Readable: true, Inode: 8},
		{Range: at(100, 110), Readable: true, Writable: true},
	}
	for name, c := range map[string]struct {
		r     mem.Range
		write bool
		want  []part
		gap   mem.Range
	}{
		"reading":                   {r: at(20, 85), want: []part{{at(20, 32), true}, {at(32, 64), true}, {at(64, 75), true}, {at(75, 80), false}, {at(80, 85), false}}},
		"writing":                   {r: at(70, 80), write: true, want: []part{{at(70, 75), true}, {at(75, 80), true}}},
		"writing what is read-only": {r: at(70, 85), write: true, gap: at(80, 85)},
		"hole":                      {r: at(85, 105), gap: at(90, 100)},
		"before all":                {r: at(5, 20), gap: at(5, 10)},
		"behind all":                {r: at(105, 120), gap: at(110, 120)},
	} {
		got, err := plan(c.r, c.write, all)
		var refused *verbs.Error
		switch {
		case c.gap.Empty() && (err != nil || !slices.Equal(got, c.want)):
			t.Errorf("%s: %v, %v", name, got, err)
		case !c.gap.Empty() && (!errors.As(err, &refused) || refused.Range != c.gap):
			t.Errorf("%s: %v, want %v", name, err, c.gap)
		}
	}
}

func TestSlicesAreTouchedOnTheirNode(t *testing.T) {
	const mib = 1 << 20
	root := testtree.Parse(t, "sys/devices/system/node/node0/cpulist: 0-1\nsys/devices/system/node/node1/cpulist: 2-3\n"+
		"sys/devices/system/node/node2/cpulist: \n")
	var parts []part
	for i := range mem.Addr(6) {
		parts = append(parts, part{mem.Range{Start: i * mib, End: (i + 1) * mib}, true})
	}
	policies := [][]int{{1}, nil, {0}, {0, 1}, {2}, nil}
	o := &Options{CPUs: []int{0, 2, 3}, CPU: 2, root: root, policy: func(at mem.Addr) []int { return policies[at/mib] }}
	got := map[string][]mem.Addr{}
	for _, q := range queuesOf(o, o.CPUs, parts) {
		for _, p := range q.left {
			name := map[int]string{1: "node 0", 2: "node 1", 3: "any"}[len(q.cpus)]
			got[name] = append(got[name], p.Start/mib)
		}
	}
	for name, want := range map[string][]mem.Addr{"node 0": {2}, "node 1": {0, 1, 5}, "any": {3, 4}} {
		if !slices.Equal(got[name], want) {
			t.Errorf("%s: %v, want %v", name, got[name], want)
		}
	}
	// A thread that may run on some of the processors gets to what lies on their nodes, and to what may lie anywhere.
	for want, cpus := range map[int][]int{3: {0}, 5: {2}, 6: {0, 2, 3}} {
		c := newCrew(o, parts)
		n := 0
		for q, _, ok := c.take(t.Context(), nil, cpus); ok; q, _, ok = c.take(t.Context(), q, cpus) {
			n++
		}
		if n != want {
			t.Errorf("on processors %v: %d parts, want %d", cpus, n, want)
		}
	}
}
