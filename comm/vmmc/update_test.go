package vmmc

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pinwheel/internal/testwait"
	"pinwheel/mem"
)

// connected are the transports without shared memory.
func connected() []transport { return transports[1:5] }

// byHand makes an area whose stores go out by Flush and Publish only.
var byHand = MapOptions{Interval: -1}

// area is an automatic update area of some pages, in the middle of an export that is two pages longer.
type area struct {
	*world
	local, remote []byte // remote is what the area goes to
	around        []byte // the export
	in            *Import
	m             *Mapping
}

func newArea(t testing.TB, tr transport, pages int, o MapOptions, change ...func(*Options)) *area {
	t.Helper()
	a := &area{world: tr.begin(t, change...)}
	n := pages * int(mem.PageSize)
	a.around, _, a.in = a.pair(t, n+2*int(mem.PageSize), ExportOptions{})
	for k := range a.around {
		a.around[k] = 0xee
	}
	// Not at a page: an area over a connection may begin anywhere.
	a.remote = a.around[104:][:n]
	var err error
	if a.local, err = a.importer.Alloc(uint64(n)); err == nil {
		a.m, err = a.in.Map(104, a.local, o)
	}
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func (a *area) flush(t testing.TB) {
	t.Helper()
	if err := a.m.Flush(testContext(t)); err != nil {
		t.Fatal(err)
	}
}

func (a *area) equal(t testing.TB) {
	t.Helper()
	if at := firstDifference(a.local, a.remote); at >= 0 {
		t.Fatalf("byte %d is %d here, %d there", at, a.local[at], a.remote[at])
	}
	n := len(a.local) + 104
	neighbours := append(slices.Clone(a.around[:104]), a.around[n:]...)
	if k := slices.IndexFunc(neighbours, func(b byte) bool { return b != 0xee }); k >= 0 {
		t.Fatalf("byte %d beside the area was written to", k)
	}
}

func firstDifference(a, b []byte) int {
	for k := range a {
		if a[k] != b[k] {
			return k
		}
	}
	return -1
}

// untracked is a node on a kernel that tracks no writes.
func (a *area) untracked() { a.m.update.tracked = false }

// tracks skips a test where the kernel can't do what it is about.
func (a *area) tracks(t testing.TB) {
	t.Helper()
	if !a.m.update.tracked {
		var u unix.Utsname
		_ = unix.Uname(&u)
		t.Skipf("Linux %s tracks no writes here: %v", unix.ByteSliceToString(u.Release[:]), a.importer.tracker.err)
	}
}

func TestFlushMakesTheReceiverEqual(t *testing.T) {
	for _, tr := range connected() {
		for _, tracked := range []bool{true, false} {
			t.Run(tr.name+map[bool]string{true: "", false: " without tracking"}[tracked], func(t *testing.T) {
				const pages = 40
				a := newArea(t, tr, pages, MapOptions{Interval: -1, Copy: true})
				if tracked {
					a.tracks(t)
				} else {
					a.importer.tracker.untrack(a.m.area)
					a.untracked()
				}
				a.flush(t)
				a.equal(t)
				random := rand.New(rand.NewPCG(1, 2))
				for round := range 100 {
					switch round % 4 {
					case 0: // no page
					case 1:
						a.local[random.IntN(len(a.local))]++
					case 2: // all pages, all bytes of some
						for p := range pages {
							a.local[p*int(mem.PageSize)+random.IntN(int(mem.PageSize))]++
						}
						for k := range a.local[:3*mem.PageSize] {
							a.local[k]++
						}
					case 3: // every other word
						for k := 0; k < len(a.local); k += 16 {
							a.local[k]++
						}
					}
					a.flush(t)
					a.equal(t)
				}
			})
		}
	}
}

// Many writers, and rounds beside them.
func TestRandomWritersReachTheReceiver(t *testing.T) {
	a := newArea(t, transports[2], 64, MapOptions{Copy: true, Interval: 100 * time.Microsecond})
	a.tracks(t)
	for round := range 20 {
		var writers sync.WaitGroup
		for w := range 4 {
			writers.Go(func() {
				random := rand.New(rand.NewPCG(uint64(round), uint64(w)))
				mine := len(a.local) / 4
				for range 2000 {
					k := w*mine + random.IntN(mine-64)
					for j := range random.IntN(64) {
						a.local[k+j] = byte(random.Uint32())
					}
				}
			})
		}
		writers.Wait()
		a.flush(t)
		a.equal(t)
	}
}

func TestStoresGoOutByThemselves(t *testing.T) {
	a := newArea(t, transports[2], 2, MapOptions{})
	a.tracks(t)
	for round := range byte(20) {
		a.local[5000] = round + 1
		testwait.Until(t, "the store arrives", func() bool { return wordAt(a.remote, 5000).Load()&0xff == uint64(round)+1 })
	}
}

// Words that lie across those of the receiver could not be stored at once.
func TestAreaThatDividesWordsIsRefused(t *testing.T) {
	w := transports[1].begin(t)
	_, _, i := w.pair(t, 2*int(mem.PageSize), ExportOptions{})
	local, err := w.importer.Alloc(mem.PageSize)
	if err != nil {
		t.Fatal(err)
	}
	if m, err := i.Map(4, local, MapOptions{}); err == nil {
		t.Errorf("mapped: %v", m)
	}
}

// The words that the receiver writes beside those of the sender stay.
func TestOnlyChangedWordsAreSent(t *testing.T) {
	a := newArea(t, transports[2], 1, byHand)
	for k := 0; k < len(a.local); k += 16 {
		a.local[k] = 1
	}
	a.flush(t)
	for k := 8; k < len(a.remote); k += 16 {
		if !bytes.Equal(a.remote[k-8:k], []byte{1, 0, 0, 0, 0, 0, 0, 0}) || a.remote[k] != 0xee {
			t.Fatalf("at %d: %x", k-8, a.remote[k-8:k+8])
		}
	}
}

// What the kernel writes for the program is found as well.
func TestReadIntoTheAreaArrives(t *testing.T) {
	a := newArea(t, transports[2], 20, byHand)
	a.tracks(t)
	want := bytes.Repeat([]byte("kernel.."), int(mem.PageSize))
	path := t.TempDir() + "/data"
	if err := os.WriteFile(path, want, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	a.flush(t)
	if n, err := f.Read(a.local[123:][:len(want)]); n != len(want) {
		t.Fatal(n, err)
	}
	a.flush(t)
	if k := firstDifference(want, a.remote[123:][:len(want)]); k >= 0 {
		t.Fatalf("byte %d differs", k)
	}
}

func TestHugePagesAreTracked(t *testing.T) {
	const huge = 2 << 20        // 2 MiB
	w := transports[1].begin(t) // the exporter has memory of its own
	remote, _, in := w.pair(t, 2*huge, ExportOptions{})
	// Huge pages of a file lie at multiples of their size in it and in memory: the block moves to such a place.
	_, err := w.importer.Alloc(2 * huge)
	place, err2 := unix.Mmap(-1, 0, 3*huge, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	local := place[huge-mem.RangeOf(place).Start%huge:][:2*huge]
	b := w.importer.blocks[0]
	b.area = mem.RangeOf(local)
	if err := mapOver(b.fd, 0, b.area); err != nil {
		t.Fatal(err)
	}
	for k := 0; k < len(local); k += int(mem.PageSize) {
		local[k] = 1
	}
	if err := unix.Madvise(local, unix.MADV_COLLAPSE); err != nil {
		t.Skipf("this kernel makes no huge pages of the shared memory at %v: %v", mem.RangeOf(local), err)
	}
	a := &area{world: w, local: local, remote: remote, in: in}
	if a.m, err = in.Map(0, local, MapOptions{Copy: true, Interval: -1}); err != nil {
		t.Fatal(err)
	}
	a.tracks(t)
	random := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		for range random.IntN(20) {
			local[random.IntN(len(local))]++
		}
		a.flush(t)
		if k := firstDifference(local, remote); k >= 0 {
			t.Fatalf("byte %d differs", k)
		}
	}
}

func TestIdleAreasAreLookedAtLessOften(t *testing.T) {
	p := newPace(0)
	for _, want := range []time.Duration{2, 4, 8, 16, 16} {
		before := p.now
		if changed := p.next(false); p.now != want*time.Millisecond || changed != (p.now != before) {
			t.Errorf("after %v: %v, %v", before, p.now, changed)
		}
	}
	if !p.next(true) || p.now != time.Millisecond || p.next(true) {
		t.Errorf("after something was found: %v", p.now)
	}
	p = newPace(30 * time.Millisecond)
	for _, found := range []bool{false, true, false} {
		if p.next(found) || p.now != 30*time.Millisecond {
			t.Errorf("an interval that was asked for became %v", p.now)
		}
	}
}

// A Flush that is given up loses nothing.
func TestFlushGoesOnWhereAnotherWasGivenUp(t *testing.T) {
	a := newArea(t, transports[2], 600, MapOptions{Interval: -1, Copy: true})
	over, cancel := context.WithCancel(context.Background())
	cancel()
	for round := range 20 {
		for k := 0; k < len(a.local); k += 8 * (1 + round%2) {
			a.local[k]++
		}
		if err := a.m.Flush(over); err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		a.flush(t)
		a.equal(t)
	}
}

func TestWaitForTheQueueIsNoLoop(t *testing.T) {
	w := transports[1].begin(t)
	_, _, i := w.pair(t, 10, ExportOptions{})
	givenUp, waits := newOp(i, nil, 0, SendOptions{}), newOp(i, nil, 0, SendOptions{})
	i.link.mu.Lock()
	givenUp.fail(ErrTooManyOps)
	i.link.mu.Unlock()
	o := &outbound{queue: []*Op{givenUp, waits}}
	if o.oldest() != (<-chan struct{})(waits.sent.c) {
		t.Error("it waits for a message that was given up")
	}
	o.queue = o.queue[:1]
	if o.oldest() == (<-chan struct{})(givenUp.sent.c) {
		t.Error("it does not wait")
	}
}

func TestKernelWithoutTrackingIsNamedOnce(t *testing.T) {
	w := transports[2].begin(t)
	var said []string
	o := w.options(t, "sender")
	o.Warn = func(m string) { said = append(said, m) }
	w.importer = openNode(t, o)
	w.importer.tracker.once.Do(func() { w.importer.tracker.err = errors.New("too old") })
	remote, _, in := w.pair(t, 2*int(mem.PageSize), ExportOptions{})
	local, err := w.importer.Alloc(2 * mem.PageSize)
	if err != nil {
		t.Fatal(err)
	}
	for k := range uint64(2) {
		m, err := in.Map(k*mem.PageSize, local[k*mem.PageSize:][:mem.PageSize], MapOptions{})
		if err != nil {
			t.Fatal(err)
		}
		at := k*mem.PageSize + 9
		local[at] = 'x'
		if err := m.Flush(testContext(t)); err != nil || remote[at] != 'x' {
			t.Errorf("has %d after Flush, %v", remote[at], err)
		}
	}
	if len(said) != 1 || !strings.Contains(said[0], "too old") {
		t.Errorf("said %q", said)
	}
}
