package files

import (
	"slices"
	"testing"
	"time"

	"go.uber.org/atomic"

	"pinwheel/comm/files/internal/turns"
	"pinwheel/comm/files/pipe"
	"pinwheel/mem"
)

var copyBelow = pipe.Auto.CopyBelow

// On each of these machines another shape is the fastest; auto finds it, and stays with it: for files that it has not
// sent before, and for one that it sends again and again.
func TestAutoFindsTheFastestShape(t *testing.T) {
	for _, again := range []bool{false, true} {
		for _, n := range []int64{leastChoice, 100_000, 1 << 20, 8 << 20, 1 << 30} {
			for _, fastest := range among(n, copyBelow, again) {
				if lost := lostBy(n, 1000, fastest, again); lost > 0.05 {
					t.Errorf("%s, %d bytes, again: %v: %.3f lost", candidates[fastest].Name, n, again, lost)
				}
			}
		}
	}
}

// Where the shape that is likely to be best is the best, few transfers are lost to find that out.
func TestTryingCostsLittleFromTheBeginning(t *testing.T) {
	for _, n := range []int64{leastChoice, 100_000, 1 << 20, 8 << 20, 1 << 30} {
		likely := among(n, copyBelow, false)[0]
		for transfers, most := range map[int]float64{20: 0.08, 50: 0.08, 100: 0.05, 300: 0.05} {
			if lost := lostBy(n, transfers, likely, false); lost > most {
				t.Errorf("%d of %d bytes: %.3f lost", transfers, n, lost)
			}
		}
	}
}

// A trial costs the more, the slower the shape is; so it is made the less often.
func TestTryingASlowShapeCostsLittle(t *testing.T) {
	const n = 100_000
	for _, times := range []time.Duration{2, 4, 8} {
		var c choices
		var lost, all time.Duration
		for i := range int64(3000) {
			k := c.choose(n, copyBelow, c.known(sentRange{from: i}))
			took := time.Millisecond
			if k.candidate != byCopy {
				took *= times
				lost += took - time.Millisecond
			}
			all += took
			c.note(k, n, took)
		}
		if share := lost.Seconds() / all.Seconds(); share > 0.03 {
			t.Errorf("%d times slower: %.3f lost", times, share)
		}
	}
}

// lostBy is the share of the time that auto loses beside noise, where one shape takes less than the others.
func lostBy(n int64, transfers, fastest int, again bool) float64 {
	var c choices
	c.known(sentRange{})
	var lost time.Duration
	for i := range int64(transfers) {
		r := sentRange{from: i + 1}
		if again {
			r.from = 0
		}
		k := c.choose(n, copyBelow, c.known(r))
		took := time.Millisecond
		if k.candidate != fastest {
			took += time.Millisecond / 2
			lost += time.Millisecond / 2
		}
		if i%7 == 0 {
			took += time.Millisecond // the machine does something else
		}
		c.note(k, n, took)
	}
	return lost.Seconds() / (time.Duration(transfers) * time.Millisecond).Seconds()
}

func TestTheFirstTransfersAreWhatIsLikelyToBeBest(t *testing.T) {
	var c choices
	for i := range int64(firstChoices) {
		for n, want := range map[int64]int{
			100: byCopy, 100_000: byCopy, 1 << 20: byChunks, 2 << 20: byChunks, 1 << 30: byChunks,
		} {
			if k := c.choose(n, copyBelow, c.known(sentRange{from: i<<40 + n})); k.candidate != want {
				t.Errorf("%d bytes: %s", n, candidates[k.candidate].Name)
			}
		}
	}
	for range 1000 {
		if k := c.choose(leastChoice-1, copyBelow, c.known(sentRange{})); k.candidate != byCopy || k.class != nil {
			t.Error("a small file is tried in another way")
		}
	}
}

// What is sent again goes in chunks that were registered with the first time, or lie in those, whatever was tried then:
// nothing is registered anew.
func TestWhatIsSentAgainFindsItsRegistrations(t *testing.T) {
	for _, n := range []int64{8 << 20, 64 << 20, 1 << 30} {
		var c choices
		for i := range int64(200) {
			k := c.choose(n, copyBelow, c.known(sentRange{from: i}))
			c.note(k, n, time.Duration(10-k.candidate)*time.Millisecond) // "single" is the fastest
		}
		for i := range int64(200) {
			k := c.choose(n, copyBelow, c.known(sentRange{from: i}))
			s := candidates[k.candidate].For(n, mem.Unlimited)
			if s.Source != pipe.Map || s.ChunkBytes != pipe.Auto.For(n, mem.Unlimited).ChunkBytes {
				t.Fatalf("%d: %+v", i, s)
			}
		}
	}
}

// What was learned from files that were registered says nothing about others.
func TestWhatIsSentAgainIsLearnedApart(t *testing.T) {
	const n = 100_000
	var c choices
	send := func(from int64, fastest int) int {
		k := c.choose(n, copyBelow, c.known(sentRange{from: from}))
		took := 2 * time.Millisecond
		if k.candidate == fastest {
			took = time.Millisecond
		}
		c.note(k, n, took)
		return k.candidate
	}
	var first, again []int
	for i := range int64(100) {
		first = append(first, send(i+1, byCopy))
		again = append(again, send(0, byChunks))
	}
	count := func(all []int, k int) int {
		return len(slices.DeleteFunc(slices.Clone(all), func(o int) bool { return o != k }))
	}
	if a, b := count(first, byCopy), count(again, byChunks); a < 85 || b < 80 {
		t.Errorf("%d of 100 were copied, and %d of what is sent again registered", a, b)
	}
}

// What stays registered of a file larger than the budget leaves room for any transfer.
func TestAClientMayHaveWhatAnyTransferRegisters(t *testing.T) {
	for _, budget := range []int64{1 << 20, 64 << 20, 4 << 30} {
		for _, s := range candidates {
			r, err := newRegistrar(nil, RegistrarOptions{Strategy: pipe.Auto, BudgetBytes: budget}, false)
			if err != nil {
				t.Fatal(err)
			}
			for n := int64(1); n <= 1<<30; n *= 2 {
				if use := r.use(s.For(n, budget)); use > r.clientBytes {
					t.Errorf("%s of %d bytes may register %d, not %d", s.Name, n, use, r.clientBytes)
				}
			}
		}
	}
}

// How long one of several reads takes that go on at a time says nothing of their sum.
func TestLongReadsBesideOthersOfTheirClientAreOneChunkEach(t *testing.T) {
	f := fileOf(t, 2*longRead)
	for budget, abreast := range map[int64]bool{64 << 20: true, 16 << 20: false} {
		r, err := newRegistrar(nil, RegistrarOptions{Strategy: pipe.Auto, BudgetBytes: budget}, false)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		var from int64 // nothing is sent again
		var several *atomic.Bool
		choose := func(client string, n int64) choice {
			from++
			read := transfer{
				r: r, client: client, strategy: pipe.Auto, file: f, stamp: stampNow(t, f), from: from, several: several,
			}
			c := read.choose(n)
			if c.mapping != nil {
				r.mappings.put(c.mapping)
			}
			return c
		}
		alone := choose("one", longRead)
		if alone.candidate != byChunks || alone.class == nil {
			t.Errorf("%d bytes, alone: %s", budget, candidates[alone.candidate].Name)
		}
		turn, err := r.await(testContext(t), "one", turns.Ask{Cost: longRead})
		if err != nil {
			t.Fatal(err)
		}
		want := byChunks
		if abreast {
			want = bySingle
		}
		if c := choose("one", longRead); c.candidate != want || abreast && c.class != nil {
			t.Errorf("%d bytes, beside another: %s", budget, candidates[c.candidate].Name)
		}
		if c := choose("another", longRead); c.candidate != byChunks {
			t.Errorf("%d bytes, beside one of another client: %s", budget, candidates[c.candidate].Name)
		}
		if c := choose("one", longRead/2); c.candidate != byChunks {
			t.Errorf("%d bytes, less of it: %s", budget, candidates[c.candidate].Name)
		}
		several = new(atomic.Bool)
		if c := choose("one", longRead); c.candidate != want || several.Load() != abreast {
			t.Errorf("%d bytes of a reader, beside another: %s", budget, candidates[c.candidate].Name)
		}
		r.over(turn)
		if c := choose("one", longRead); c.candidate != want {
			t.Errorf("%d bytes of a reader, between others: %s", budget, candidates[c.candidate].Name)
		}
		several = nil
		if c := choose("one", longRead); c.candidate != byChunks {
			t.Errorf("%d bytes, alone again: %s", budget, candidates[c.candidate].Name)
		}
	}
}

func TestNotMoreRangesAreKnownThanThereIsRoomFor(t *testing.T) {
	var c choices
	for i := range int64(2*maxSent + 1) {
		c.known(sentRange{from: i << 20})
		if len(c.sent) > maxSent {
			t.Fatalf("%d ranges are known", len(c.sent))
		}
	}
	if !c.known(sentRange{from: 2 * maxSent << 20}) {
		t.Error("the latest range is not known")
	}
}
