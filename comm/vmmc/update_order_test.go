package vmmc

import (
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pinwheel/internal/testwait"
	"pinwheel/mem"
)

// Whoever sees the word that was published sees all stores before it.
func TestPublishIsNeverOvertaken(t *testing.T) {
	for _, tr := range transports {
		t.Run(tr.name, func(t *testing.T) {
			w := tr.begin(t)
			const pages = 9
			n := pages * int(mem.PageSize)
			remote, _, in := w.pair(t, n, ExportOptions{})
			local, err := w.importer.Alloc(uint64(n))
			if err != nil {
				t.Fatal(err)
			}
			m, err := in.Map(0, local, MapOptions{Interval: 200 * time.Microsecond})
			if err != nil {
				t.Fatal(err)
			}
			const rounds = 300
			failed := make(chan error, 1)
			go func() {
				defer close(failed)
				flag, seen := wordAt(remote, n/2), uint64(0)
				for seen < rounds {
					now := flag.Load()
					if now < seen || now > rounds {
						failed <- errors.New("the word goes back, or is torn")
						return
					}
					seen = now
					for p := range pages {
						if at := p*int(mem.PageSize) + 8*(p+1); wordAt(remote, at).Load() < seen {
							failed <- errors.New("the word came before what was stored before it")
							return
						}
					}
				}
			}()
			for k := range uint64(rounds) {
				for p := range pages {
					wordAt(local, p*int(mem.PageSize)+8*(p+1)).Store(k + 1)
				}
				if err := m.Publish(testContext(t), uint64(n/2), k+1); err != nil {
					t.Fatal(err)
				}
			}
			if err := testwait.Receive(t, "the last word", failed); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestStoresOfWordsKeepTheirOrder(t *testing.T) {
	a := newArea(t, transports[2], 1, byHand)
	first, second := wordAt(a.remote, 64), wordAt(a.remote, 2048)
	first.Store(0)
	second.Store(0)
	done := make(chan bool)
	const last = 5000
	go func() {
		for ok := true; ; {
			s := second.Load()
			ok = ok && first.Load() >= s
			if s == last || !ok {
				done <- ok
				return
			}
		}
	}()
	for k := range uint64(last) {
		if err := errors.Join(a.m.Store(64, k+1), a.m.Store(2048, k+1)); err != nil {
			t.Fatal(err)
		}
	}
	if !testwait.Receive(t, "the last word", done) {
		t.Error("the second word came before the first")
	}
	if wordAt(a.local, 64).Load() != last {
		t.Error("the area does not show what was stored")
	}
	wordAt(a.remote, 64).Store(1) // the receiver's answer: nothing sends the word again
	a.flush(t)
	if got := wordAt(a.remote, 64).Load(); got != 1 {
		t.Errorf("the word was sent again: %d", got)
	}
	if err := a.m.Store(4, 1); !errors.Is(err, ErrBounds) {
		t.Errorf("a store of no word: %v", err)
	}
	if err := a.m.Store(mem.PageSize, 1); !errors.Is(err, ErrBounds) {
		t.Errorf("a store beyond the area: %v", err)
	}
}

func TestFlushOfARangeSendsItsPages(t *testing.T) {
	a := newArea(t, transports[2], 4, byHand)
	page := int(mem.PageSize)
	a.local[0], a.local[2*page] = 1, 2
	if err := a.m.FlushRange(testContext(t), uint64(2*page), 1); err != nil {
		t.Fatal(err)
	}
	if a.remote[0] != 0xee || a.remote[2*page] != 2 {
		t.Errorf("has %d and %d", a.remote[0], a.remote[2*page])
	}
	a.flush(t)
	if a.remote[0] != 1 {
		t.Errorf("has %d after a Flush of all", a.remote[0])
	}
	if err := a.m.FlushRange(testContext(t), uint64(3*page), uint64(page)+1); !errors.Is(err, ErrBounds) {
		t.Errorf("beyond the area: %v", err)
	}
	if err := a.m.FlushRange(testContext(t), 5, 0); err != nil {
		t.Errorf("nothing: %v", err)
	}
}

// What a device writes into pages that were pinned before causes no fault, and so the kernel does not tell of it. Nor
// does it of stores into another mapping of the same memory.
func TestFlushOfARangeSendsWhatTheKernelDoesNotTell(t *testing.T) {
	a := newArea(t, transports[2], 2, MapOptions{Interval: -1, Copy: true})
	a.flush(t)
	area := mem.RangeOf(a.local)
	other, err := a.m.block.part(area)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(other)
	other[5000] = 7
	if err := a.m.FlushRange(testContext(t), 5000, 1); err != nil {
		t.Fatal(err)
	}
	if a.local[5000] != 7 {
		t.Fatal("the mappings are of different memory")
	}
	a.equal(t)
}
