package verbstest

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"pinwheel/mem"
	"pinwheel/verbs"
)

// Trait is something that not every provider can do.
type Trait string

const (
	// ChecksMappings means that memory can be registered only if it is mapped. Only sim lacks it.
	ChecksMappings Trait = "checks mappings"
	// ChecksAccess means that read-only memory can't be registered for writing.
	ChecksAccess Trait = "checks access"
)

// write is the access of a receive buffer.
const write = verbs.AccessLocalWrite | verbs.AccessRemoteWrite

// TestProvider checks that the providers that open returns keep the contract
// of verbs.Provider. Each subtest opens its own and closes it. A provider that is a
// verbs.Accountant is held to its accounts as well. failing runs f such that
// deregistrations in it fail; see WithoutCall.
func TestProvider(t *testing.T, open func(testing.TB) verbs.Provider,
	failing func(t testing.TB, f func()), traits ...Trait) {
	s := &suite{open: open, failing: failing, traits: traits}
	for _, c := range []struct {
		name string
		test func(*testing.T)
		need Trait
	}{
		{name: "Describes itself", test: s.describes},
		{name: "Region covers the request in whole pages", test: s.covers},
		{name: "Handles are reused without end", test: s.reuse},
		{name: "Overlapping registrations are independent", test: s.overlap},
		{name: "Untouched memory is registered", test: s.untouched},
		{name: "Second deregistration is refused", test: s.deregisterTwice},
		{name: "Failed deregistration can be repeated", test: s.deregisterAgain},
		{name: "Foreign region is refused", test: s.foreign},
		{name: "Impossible range is not mapped", test: s.impossible},
		{name: "More than the machine has is refused", test: s.huge, need: ChecksMappings},
		{name: "Hole is not mapped", test: s.hole, need: ChecksMappings},
		{name: "Inaccessible page is not mapped", test: s.inaccessible, need: ChecksMappings},
		{name: "Read-only memory is not registered for writing", test: s.readOnly, need: ChecksAccess},
		{name: "Closed provider refuses", test: s.closed},
		{name: "Memory may be gone before deregistration", test: s.unmappedWhileRegistered},
		{name: "Close releases what is registered", test: s.closeReleases},
		{name: "Concurrent disjoint ranges", test: s.concurrentDisjoint},
		{name: "Concurrent overlapping ranges", test: s.concurrentOverlapping},
		{name: "One of many deregistrations wins", test: s.deregisterRace},
		{name: "Close during calls", test: s.closeRace},
	} {
		if c.need == "" || slices.Contains(traits, c.need) {
			t.Run(c.name, c.test)
		}
	}
}

type suite struct {
	open    func(testing.TB) verbs.Provider
	failing func(testing.TB, func())
	traits  []Trait
}

// provider opens one that is closed at the end of the test.
func (s *suite) provider(t *testing.T) verbs.Provider {
	t.Helper()
	p := s.open(t)
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return p
}

func (s *suite) describes(t *testing.T) {
	p := s.provider(t)
	if p.Name() == "" {
		t.Error("no name")
	}
	if l := p.Limits(); l.MaxRegions <= 0 || l.MaxRegionBytes <= 0 || l.MaxPinnedBytes < 0 || l.PinnedSource == "" {
		t.Errorf("incomplete limits: %+v", l)
	}
	wantUsage(t, p, 0)
}

func (s *suite) covers(t *testing.T) {
	p := s.provider(t)
	_, all := Map(t, 8*mem.PageSize)
	for _, r := range []mem.Range{
		all,
		Part(all, 0, 1),
		Part(all, 100, mem.PageSize),
		Part(all, 8*mem.PageSize-1, 1),
	} {
		g := register(t, p, r)
		if g.Range != r.PageAligned() || g.Access != write {
			t.Errorf("registering %v for %#x gave %+v", r, write, g)
		}
		wantUsage(t, p, 1)
		deregister(t, p, g)
	}
	wantUsage(t, p, 0)
}

func (s *suite) reuse(t *testing.T) {
	p := s.provider(t)
	_, r := Map(t, mem.PageSize)
	// One more than the largest table there is here, as far as that takes moments only.
	for range min(p.Limits().MaxRegions, 20_000) + 1 {
		deregister(t, p, register(t, p, r))
	}
	wantUsage(t, p, 0)
}

func (s *suite) overlap(t *testing.T) {
	p := s.provider(t)
	_, r := Map(t, 4*mem.PageSize)
	front, back := r, r
	front.End -= mem.Addr(mem.PageSize)
	back.Start += mem.Addr(mem.PageSize)
	a, b, c := register(t, p, front), register(t, p, back), register(t, p, back)
	deregister(t, p, b)
	d := register(t, p, r)
	wantUsage(t, p, 3)
	deregister(t, p, a)
	deregister(t, p, c)
	deregister(t, p, d)
	wantUsage(t, p, 0)
}

func (s *suite) untouched(t *testing.T) {
	p := s.provider(t)
	b, r := Map(t, 16*mem.PageSize)
	g := register(t, p, r)
	for i := range b {
		if b[i] != 0 {
			t.Fatalf("byte %d of fresh memory is %d", i, b[i])
		}
	}
	deregister(t, p, g)
}

func (s *suite) deregisterTwice(t *testing.T) {
	p := s.provider(t)
	_, r := Map(t, mem.PageSize)
	g := register(t, p, r)
	deregister(t, p, g)
	wantError(t, p.Deregister(g), verbs.ErrUnknownRegion)
	other := register(t, p, r) // may get the same slot
	wantError(t, p.Deregister(g), verbs.ErrUnknownRegion)
	wantUsage(t, p, 1)
	deregister(t, p, other)
}

func (s *suite) deregisterAgain(t *testing.T) {
	p := s.provider(t)
	_, r := Map(t, 4*mem.PageSize)
	g := register(t, p, r)
	for range 2 {
		var err error
		s.failing(t, func() { err = p.Deregister(g) })
		if err == nil || errors.Is(err, verbs.ErrUnknownRegion) {
			t.Fatalf("got %v of a deregistration that was to fail", err)
		}
		wantUsage(t, p, 1)
	}
	other := register(t, p, r) // must not get the place of the first
	wantUsage(t, p, 2)
	deregister(t, p, g)
	wantUsage(t, p, 1)
	wantError(t, p.Deregister(g), verbs.ErrUnknownRegion)
	deregister(t, p, other)
	wantUsage(t, p, 0)
}

func (s *suite) foreign(t *testing.T) {
	p := s.provider(t)
	_, r := Map(t, mem.PageSize)
	g := register(t, p, r)
	wantError(t, p.Deregister(verbs.Region{}), verbs.ErrUnknownRegion)
	wantError(t, p.Deregister(verbs.Region{Range: r, Handle: math.MaxUint64}), verbs.ErrUnknownRegion)
	wantUsage(t, p, 1)
	deregister(t, p, g)
}

func (s *suite) impossible(t *testing.T) {
	p := s.provider(t)
	_, r := Map(t, 2*mem.PageSize)
	top := ^mem.Addr(0)
	for name, bad := range map[string]mem.Range{
		"empty":                      {Start: r.Start, End: r.Start},
		"reversed":                   {Start: r.End, End: r.Start},
		"zero":                       {},
		"ends at the last address":   {Start: top - 10, End: top},
		"no end when page-aligned":   {Start: r.Start, End: top - 1},
		"ends at the last page's":    {Start: top - mem.Addr(mem.PageSize), End: top},
		"beyond the user half":       {Start: 1 << 62, End: 1<<62 + mem.Addr(mem.PageSize)},
		"first bytes":                {Start: 0, End: 10},
		"across the whole user half": {Start: r.Start, End: 1 << 62},
	} {
		if (name == "beyond the user half" || name == "first bytes" || name == "across the whole user half") &&
			!slices.Contains(s.traits, ChecksMappings) {
			continue
		}
		g, err := p.Register(bad, write)
		if !isTooMuch(err) {
			t.Errorf("%s, %v: got %+v, %v; want ErrNotMapped", name, bad, g, err)
		}
	}
	wantUsage(t, p, 0)
}

func isTooMuch(err error) bool {
	return errors.Is(err, verbs.ErrNotMapped) || errors.Is(err, verbs.ErrRegionSize) ||
		errors.Is(err, verbs.ErrPinnedMemory)
}

// huge asks for more than the machine has, whatever of it is mapped: the
// kernel would pin until it kills somebody.
func (s *suite) huge(t *testing.T) {
	const most = 1 << 42 // 4 TiB
	if verbs.PhysicalBytes() >= most {
		t.Skip("this machine could pin that")
	}
	p := s.provider(t)
	_, r := Map(t, 16*mem.PageSize)
	bad := map[string]mem.Range{}
	for _, shift := range []int{42, 43, 46, 47, 56, 62, 63} {
		bad[fmt.Sprintf("2^%d, 64 KiB of it mapped", shift)] = Part(r, 0, 1<<shift)
	}
	for name, prot := range map[string]int{"4 TiB writable": unix.PROT_READ | unix.PROT_WRITE,
		"4 TiB inaccessible": unix.PROT_NONE} {
		b, err := unix.Mmap(-1, 0, most, prot, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
		if err != nil {
			t.Logf("without %s: %v", name, err) // RLIMIT_AS
			continue
		}
		defer func() { _ = unix.Munmap(b) }()
		bad[name] = mem.RangeOf(b)
	}
	for name, r := range bad {
		if g, err := p.Register(r, write); !isTooMuch(err) {
			t.Errorf("%s, %v: got %+v, %v", name, r, g, err)
		}
	}
	wantUsage(t, p, 0)
	deregister(t, p, register(t, p, r))
}

func (s *suite) hole(t *testing.T) {
	p := s.provider(t)
	page := mem.PageSize
	_, r := Map(t, 9*page)
	Unmap(t, Part(r, 4*page, page))
	_, err := p.Register(r, write)
	wantError(t, err, verbs.ErrNotMapped)
	_, err = p.Register(Part(r, 4*page, page), write)
	wantError(t, err, verbs.ErrNotMapped)
	wantUsage(t, p, 0)
	deregister(t, p, register(t, p, Part(r, 0, 4*page)))
}

func (s *suite) inaccessible(t *testing.T) { s.protected(t, unix.PROT_NONE) }
func (s *suite) readOnly(t *testing.T)     { s.protected(t, unix.PROT_READ) }

// protected registers four pages of which the third has the given protection.
func (s *suite) protected(t *testing.T, prot int) {
	p := s.provider(t)
	page := mem.PageSize
	b, r := Map(t, 4*page)
	if err := unix.Mprotect(b[2*page:3*page], prot); err != nil {
		t.Fatal(err)
	}
	_, err := p.Register(r, write)
	wantError(t, err, verbs.ErrNotMapped)
	wantUsage(t, p, 0)
}

func (s *suite) unmappedWhileRegistered(t *testing.T) {
	before := Pinned(t)
	p := s.provider(t)
	page := mem.PageSize
	_, r := Map(t, 8*page)
	whole, half := register(t, p, r), register(t, p, Part(r, 0, 4*page))
	Unmap(t, Part(r, 2*page, page))
	deregister(t, p, whole)
	Unmap(t, r)
	deregister(t, p, half)
	wantUsage(t, p, 0)
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if after := Pinned(t); after != before {
		t.Errorf("VmPin+VmLck is %d bytes in the end, was %d", after, before)
	}
}

func (s *suite) closed(t *testing.T) {
	p := s.open(t)
	_, r := Map(t, mem.PageSize)
	g := register(t, p, r)
	for range 2 {
		if err := p.Close(); err != nil {
			t.Fatalf("Close: %v", err)
		}
	}
	_, err := p.Register(r, write)
	wantError(t, err, verbs.ErrClosed)
	wantError(t, p.Deregister(g), verbs.ErrClosed)
	wantUsage(t, p, 0)
}

func (s *suite) closeReleases(t *testing.T) {
	before := Pinned(t)
	p := s.open(t)
	_, r := Map(t, 32*mem.PageSize)
	for i := range mem.Addr(8) {
		register(t, p, mem.Range{Start: r.Start + i*mem.Addr(mem.PageSize), End: r.End - i*mem.Addr(mem.PageSize)})
	}
	if err := p.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
	wantUsage(t, p, 0)
	if after := Pinned(t); after != before {
		t.Errorf("VmPin+VmLck is %d bytes after Close, was %d", after, before)
	}
}

func register(t *testing.T, p verbs.Provider, r mem.Range) verbs.Region {
	t.Helper()
	g, err := p.Register(r, write)
	if err != nil {
		t.Fatalf("Register %v: %v", r, err)
	}
	return g
}

func deregister(t *testing.T, p verbs.Provider, g verbs.Region) {
	t.Helper()
	if err := p.Deregister(g); err != nil {
		t.Fatalf("Deregister %v: %v", g.Range, err)
	}
}

// wantError requires the given kind in a *verbs.Error that names its call.
func wantError(t *testing.T, err, kind error) {
	t.Helper()
	var typed *verbs.Error
	if !errors.Is(err, kind) {
		t.Errorf("got error %v, want %v", err, kind)
	} else if !errors.As(err, &typed) || typed.Op == "" {
		t.Errorf("error %v is no *verbs.Error with a call", err)
	}
}

func wantUsage(t *testing.T, p verbs.Provider, regions int64) {
	t.Helper()
	a, ok := p.(verbs.Accountant)
	if !ok {
		return
	}
	if u := a.Usage(); u.Regions != regions || (u.PinnedBytes == 0) != (regions == 0) {
		t.Errorf("usage is %+v with %d regions registered", u, regions)
	}
}
