package mem

import (
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestNewRangeRefusesWhatCannotBeRegistered(t *testing.T) {
	if _, err := NewRange(0x1000, 0); !errors.Is(err, ErrEmpty) {
		t.Errorf("zero length: got %v, want ErrEmpty", err)
	}
	if _, err := NewRange(math.MaxUint64-10, 100); !errors.Is(err, ErrOverflow) {
		t.Errorf("wrap around: got %v, want ErrOverflow", err)
	}
	if _, err := NewRange(math.MaxUint64-10, 5); !errors.Is(err, ErrOverflow) {
		t.Errorf("end that cannot be rounded up to a page: got %v, want ErrOverflow", err)
	}
	top := Addr(math.MaxUint64) - Addr(2*PageSize) + 1
	r, err := NewRange(top, PageSize)
	if err != nil || r.PageAligned() != r {
		t.Errorf("last whole page below the top: got %v, %v", r, err)
	}
}

func TestPageAlignedIsSmallestCoverOfWholePages(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		start := Addr(rapid.Uint64Range(0, 1<<47).Draw(t, "start"))
		n := rapid.Uint64Range(1, 1<<40).Draw(t, "bytes")
		r, err := NewRange(start, n)
		if err != nil {
			t.Fatal(err)
		}
		p := r.PageAligned()
		if !p.Contains(r) || p.Len()%PageSize != 0 || uint64(p.Start)%PageSize != 0 || p.Len() >= r.Len()+2*PageSize {
			t.Fatalf("%v aligned to %v", r, p)
		}
		if p.Pages() != r.Pages() || r.Pages()*PageSize != p.Len() {
			t.Fatalf("%v has %d pages, aligned %d", r, r.Pages(), p.Pages())
		}
	})
}

func TestOverlapIsSymmetricAndAgreesWithUnion(t *testing.T) {
	gen := rapid.Custom(func(t *rapid.T) Range {
		s := rapid.Uint64Range(0, 64).Draw(t, "start")
		return Range{Addr(s), Addr(s + rapid.Uint64Range(0, 32).Draw(t, "bytes"))}
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := gen.Draw(t, "a"), gen.Draw(t, "b")
		shared := false
		for x := Addr(0); x < 128; x++ {
			in := func(r Range) bool { return r.Start <= x && x < r.End }
			shared = shared || in(a) && in(b)
		}
		if a.Overlaps(b) != shared || b.Overlaps(a) != shared {
			t.Fatalf("%v overlaps %v: got %v, want %v", a, b, a.Overlaps(b), shared)
		}
		u := a.Union(b)
		if !a.Empty() && !u.Contains(a) || !b.Empty() && !u.Contains(b) ||
			u.Len() > max(a.End, b.End, 0).sub(min(a.Start, b.Start)) {
			t.Fatalf("union of %v and %v is %v", a, b, u)
		}
	})
}

func (a Addr) sub(b Addr) uint64 { return uint64(a - b) }

func TestSizesReadBackAsWritten(t *testing.T) {
	for s, want := range map[string]int64{"0": 0, "16K": 16 << 10, "16k": 16 << 10, "64MiB": 64 << 20, "1gb": 1 << 30,
		"2T": 2 << 40, "inf": Unlimited, "7": 7, "7b": 7} {
		if got, err := ParseBytes(s); err != nil || got != want {
			t.Errorf("ParseBytes(%q) = %d, %v; want %d", s, got, err, want)
		}
	}
	for _, s := range []string{"", "K", "-1", "+1", "1.5M", "16Q", "16KK", "9000000T", "0x10", "ib", "1i",
		"1ib", "1ki", "1bk", "1_000"} {
		if got, err := ParseBytes(s); err == nil {
			t.Errorf("ParseBytes(%q) = %d, want an error", s, got)
		}
	}
	for n, want := range map[uint64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB",
		1<<20 - 1: "1.0 MiB", 3 << 29: "1.5 GiB"} {
		if got := FormatBytes(n); got != want {
			t.Errorf("FormatBytes(%d) = %q, want %q", n, got, want)
		}
	}
}
