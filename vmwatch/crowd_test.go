//go:build amd64 || arm64

package vmwatch

import (
	"errors"
	"testing"

	"pinwheel/internal/testwait"
	"pinwheel/mem"
)

// everySecond yields n buffers of four pages, with as many between two of them.
func everySecond(t *testing.T, n uint64) (buffers []mem.Range) {
	t.Helper()
	const pages = 4
	r, free, err := scratch(2 * pages * n * mem.PageSize)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(free)
	for at := r.Start; at < r.End; at += 2 * pages * mem.Addr(mem.PageSize) {
		buffers = append(buffers, mem.Range{Start: at, End: at + pages*mem.Addr(mem.PageSize)})
	}
	return buffers
}

func TestManySmallBuffersNeedFewMappings(t *testing.T) {
	testwait.Bound(t)
	w := openOrExplain(t, "uffd")
	w.frames = nil
	before := mappings(t)
	buffers := everySecond(t, 28000)
	tokens := make([]uint64, len(buffers))
	for i, r := range buffers {
		var err error
		if tokens[i], _, err = w.Watch(r); err != nil {
			t.Fatalf("buffer %d: %v", i, err)
		}
	}
	if n := mappings(t) - before; n > 100 {
		t.Errorf("%d buffers made %d mappings", len(buffers), n)
	}
	for _, token := range tokens {
		w.Unwatch(token)
	}
	if n := mappings(t) - before; n > 50 {
		t.Errorf("%d mappings more after the buffers are forgotten", n)
	}
}

func TestWatchStaysFarFromTheMappingsThatTheKernelPermits(t *testing.T) {
	const most = 65536
	var have, looks int
	c := crowd{most: most, count: func() (int, error) { looks++; return have, nil }}
	granted := 0
	for c.admit(granted+1) == nil {
		granted++
	}
	if granted != most/16 || looks > 20 {
		t.Errorf("%d parts were granted after %d looks", granted, looks)
	}
	if have = most; c.admit(1) != nil {
		t.Error("it looks each time")
	}
	refused := 0
	for range most {
		if err := c.admit(1); errors.Is(err, ErrCrowded) {
			refused++
		}
	}
	if refused < most-most/128 {
		t.Errorf("%d of %d were refused beside a program that has all mappings", refused, most)
	}
	have = 1
	for range most/128 + 1 {
		_ = c.admit(1)
	}
	if err := c.admit(1); err != nil {
		t.Error("refused after the program has given its mappings back:", err)
	}
}

func TestTooManyMappingsAreNotCachedAndSaidOnce(t *testing.T) {
	w := open(t, "uffd")
	said := 0
	w.onRefused = func(string) { said++ }
	defer func() { _ = w.Close() }()
	n := w.source.note.(*uffdNotifier)
	n.crowd = crowd{most: 64, count: func() (int, error) { return 1, nil }}
	r, free, err := scratch(64 << GranuleBits)
	if err != nil {
		t.Fatal(err)
	}
	defer free()
	before := mappings(t)
	refused := 0
	for at := wholeGranules(r).Start + 1<<GranuleBits; at+1<<GranuleBits < r.End; at += 2 << GranuleBits {
		if _, _, err := w.Watch(mem.Range{Start: at, End: at + 1}); errors.Is(err, ErrNotCacheable) {
			refused++
		}
	}
	if more := mappings(t) - before; refused == 0 || more > 64/8+1 {
		t.Errorf("%d were refused, with %d mappings more", refused, more)
	}
	if said != 1 {
		t.Errorf("said %d times", said)
	}
}
