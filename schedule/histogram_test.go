package schedule

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestHistogramKnowsQuantilesToAFifth(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for _, scale := range []int64{1_000, 1_000_000, 1_000_000_000} {
		var l Histogram
		var all []int64
		for range 10_000 {
			ns := random.Int64N(2*scale) - scale/2
			l.Note(ns)
			all = append(all, ns)
		}
		slices.Sort(all)
		h := l
		for _, q := range []float64{0.01, 0.1, 0.5, 0.9, 0.99, 1} {
			want, got := all[int(q*10_000)-1], h.QuantileNs(q)
			if got < want || got-want > max(want, -want)/4+256 {
				t.Errorf("quantile %g of %d up to %d ns: %d, want %d", q, len(all), scale, got, want)
			}
		}
		if h.Count() != 10_000 || h.MaxNs() != all[9_999] {
			t.Errorf("%d, %d ns at most; want 10000 and %d", h.Count(), h.MaxNs(), all[9_999])
		}
	}
}

func TestHistogramTakesAnything(t *testing.T) {
	var l Histogram
	if h := l; h.Count() != 0 || h.QuantileNs(0.5) != 0 || h.MaxNs() != 0 {
		t.Errorf("an empty one has %d, median %d, %d at most", h.Count(), h.QuantileNs(0.5), h.MaxNs())
	}
	for _, ns := range []int64{-Never, -1, 0, 1, 255, 256, Never} {
		l.Note(ns)
	}
	if h := l; h.Count() != 7 || h.MaxNs() != Never {
		t.Errorf("%d, %d at most; want 7 and %d", h.Count(), h.MaxNs(), int64(Never))
	}
	if n := testing.AllocsPerRun(100, func() { l.Note(12345) }); n != 0 {
		t.Errorf("adding one allocates %g times", n)
	}
}

func TestHistogramsAddUpAndAreWritten(t *testing.T) {
	var early, late Histogram
	for ns := range int64(1000) {
		early.Note(-1000 * ns)
		late.Note(1000 * ns)
	}
	both, more := early, late
	both.Add(&more)
	text, err := json.Marshal(both)
	if err != nil {
		t.Fatal(err)
	}
	var read Histogram
	if err := json.Unmarshal(text, &read); err != nil || read != both || read.Count() != 2000 {
		t.Errorf("%v: of %d are read %d: %s", err, both.Count(), read.Count(), text)
	}
	for _, bad := range []string{`{"counts":[[-1,1]]}`, `{"counts":[[1000,1]]}`, `{"counts":[[1,-1]]}`, `[]`} {
		if err := json.Unmarshal([]byte(bad), &read); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
}
