package vmmc

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"pinwheel/internal/testwait"
	"pinwheel/mem"
)

var pageBytes = int(mem.PageSize)

// updateRounds is how often random writers write between two Flushes that make both sides equal.
func updateRounds() int {
	if testing.Short() {
		return 100
	}
	return 1000
}

// farArea maps export 1, of some pages, to an area here.
func farArea(t *testing.T, w *far, pages int, o MapOptions) (i *Import, local []byte, m *Mapping) {
	t.Helper()
	n := pages * pageBytes
	i = w.pair(t, n, ExportOptions{})
	local, err := w.importer.Alloc(uint64(n))
	if err == nil {
		m, err = i.Map(0, local, o)
	}
	if err != nil {
		t.Fatal(err)
	}
	if !m.update.tracked {
		t.Fatalf("the kernel of the guest tracks no writes: %v", w.importer.tracker.err)
	}
	return i, local, m
}

// scribble has some writers write runs of bytes into parts of an area of their own.
func scribble(local []byte, seed uint64, runs int) {
	const writers = 4
	var all sync.WaitGroup
	for k := range writers {
		all.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(k)))
			mine := local[k*len(local)/writers:][:len(local)/writers]
			for range random.IntN(runs) {
				at := random.IntN(len(mine) - 64)
				for j := range random.IntN(64) {
					mine[at+j] = byte(random.Uint32())
				}
			}
		})
	}
	all.Wait()
}

// updatesBetweenNodes are those of automatic update (§4.3).
var updatesBetweenNodes = []betweenNodes{
	{"4.3 after Flush both sides are equal", func(t *testing.T, w *far) {
		rounds := updateRounds()
		testwait.BoundAt(t, testwait.Limit+time.Duration(rounds)*time.Second)
		_, local, m := farArea(t, w, 16, MapOptions{Copy: true})
		for round := range rounds {
			scribble(local, uint64(round), 30)
			if round%10 == 9 { // all of it
				for k := range local {
					local[k]++
				}
			}
			if err := m.Flush(testContext(t)); err != nil {
				t.Fatal(err)
			}
			w.equal(t, local)
		}
	}},
	{"4.3 what is published is never overtaken", func(t *testing.T, w *far) {
		const pages, rounds = 5, 200
		_, local, m := farArea(t, w, pages, MapOptions{Interval: 200 * time.Microsecond})
		watching := Watching{ID: 1, Flag: 2048, Last: rounds}
		for p := range pages {
			watching.Words = append(watching.Words, p*pageBytes+8*(p+1))
		}
		answer := w.watch(watching)
		for k := range uint64(rounds) {
			for _, at := range watching.Words {
				wordAt(local, at).Store(k + 1)
			}
			if err := m.Publish(testContext(t), uint64(watching.Flag), k+1); err != nil {
				t.Fatal(err)
			}
		}
		if err := testwait.Receive(t, "the last word", answer); err != nil {
			t.Error(err)
		}
	}},
	{"4.3 stores go out by themselves, and none after Unmap", func(t *testing.T, w *far) {
		_, local, m := farArea(t, w, 2, MapOptions{})
		answer := w.watch(Watching{ID: 1, Flag: 5000, Last: 1})
		wordAt(local, 5000).Store(1)
		if err := testwait.Receive(t, "the store", answer); err != nil {
			t.Error(err)
		}
		if err := m.Unmap(); err != nil {
			t.Fatal(err)
		}
		local[0] = 'x'
		w.tell(t, "Unexport", uint32(1))
		w.has(t, 0, "\x00")
	}},
}
