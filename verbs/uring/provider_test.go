package uring_test

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pinwheel/mem"
	"pinwheel/verbs"
	"pinwheel/verbs/uring"
	"pinwheel/verbs/verbstest"
)

const write = verbs.AccessLocalWrite

func open(t testing.TB, o uring.Options) *uring.Provider {
	t.Helper()
	p, err := uring.Open(o)
	verbstest.Available(t, err)
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return p
}

func register(t testing.TB, p verbs.Provider, r mem.Range) verbs.Region {
	t.Helper()
	g, err := p.Register(r, write)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestConformance(t *testing.T) {
	for name, o := range map[string]uring.Options{
		"default":         {},
		"one ring":        {Rings: 1},
		"one small table": {Slots: 40},
	} {
		t.Run(name, func(t *testing.T) {
			verbstest.TestProvider(t, func(t testing.TB) verbs.Provider { return open(t, o) },
				verbstest.WithoutCall(unix.SYS_IO_URING_REGISTER, syscall.ENOMEM), verbstest.ChecksMappings, verbstest.ChecksAccess)
		})
	}
}

func TestUsageEqualsVmPinToThePage(t *testing.T) {
	p := open(t, uring.Options{})
	verbstest.NeedPromptRelease(t, p)
	verbstest.ExactUsage(t, p, "VmPin")
}

func TestAllSlotsThenErrRegions(t *testing.T) {
	p := open(t, uring.Options{})
	if got := p.Limits().MaxRegions; got != 16_384 {
		t.Fatalf("MaxRegions is %d, want 16384", got)
	}
	verbstest.NeedPinned(t, p, 16_384*int64(mem.PageSize))
	_, r := verbstest.Map(t, mem.PageSize)
	held := make([]verbs.Region, p.Limits().MaxRegions)
	for i := range held {
		held[i] = register(t, p, r)
	}
	if _, err := p.Register(r, write); !errors.Is(err, verbs.ErrRegions) {
		t.Errorf("registration 16385: %v, want ErrRegions", err)
	}
	if err := p.Deregister(held[7000]); err != nil {
		t.Fatal(err)
	}
	register(t, p, r)
	if _, err := p.Register(r, write); !errors.Is(err, verbs.ErrRegions) {
		t.Errorf("full again: %v, want ErrRegions", err)
	}
}

func TestRangeBeyondATableIsTooLong(t *testing.T) {
	p := open(t, uring.Options{Slots: 8})
	if got := p.Limits().MaxRegionBytes; got != 8<<30 {
		t.Errorf("MaxRegionBytes is %d, want 8 GiB", got)
	}
	_, err := p.Register(mem.Range{Start: 1 << 30, End: 9<<30 + 1}, write)
	if !errors.Is(err, verbs.ErrRegionSize) {
		t.Errorf("got %v, want ErrRegionSize", err)
	}
}

func TestOnDemandPagingIsUnsupported(t *testing.T) {
	p := open(t, uring.Options{})
	_, r := verbstest.Map(t, mem.PageSize)
	if _, err := p.Register(r, write|verbs.AccessOnDemand); !errors.Is(err, verbs.ErrUnsupported) {
		t.Errorf("got %v, want ErrUnsupported", err)
	}
}

func TestErrorNamesCallRangeAndErrno(t *testing.T) {
	p := open(t, uring.Options{})
	_, r := verbstest.Map(t, mem.PageSize)
	verbstest.Unmap(t, r)
	_, err := p.Register(r, write)
	var typed *verbs.Error
	if !errors.As(err, &typed) || typed.Range != r || typed.Errno != syscall.EFAULT {
		t.Errorf("got %#v", err)
	}
}

// Memory of more than 1 GiB is one page of a file, mapped over and over.
func TestRangeBeyondOneGiBTakesSeveralSlots(t *testing.T) {
	before := verbstest.StatusBytes(t, "VmPin")
	p := open(t, uring.Options{Slots: 3})
	const n = 2<<30 + 16<<10
	verbstest.NeedPinned(t, p, n)
	late := verbstest.ReleasesLate(t, open(t, uring.Options{}))
	r := mapRepeatedly(t, n)
	g := register(t, p, r)
	if pinned := verbstest.StatusBytes(t, "VmPin") - before; pinned != n && !late || p.Usage().PinnedBytes != n {
		t.Errorf("VmPin grew by %d, usage %+v, want %d bytes", pinned, p.Usage(), n)
	}
	if _, err := p.Register(verbstest.Part(r, 0, 1), write); !errors.Is(err, verbs.ErrRegions) {
		t.Errorf("a fourth slot: %v, want ErrRegions", err)
	}
	if err := p.Deregister(g); err != nil {
		t.Fatal(err)
	}
	// All or nothing: the last GiB fails, so what was pinned before is released.
	verbstest.Unmap(t, verbstest.Part(r, 2<<30, mem.PageSize))
	if _, err := p.Register(r, write); !errors.Is(err, verbs.ErrNotMapped) {
		t.Errorf("hole in the third GiB: %v, want ErrNotMapped", err)
	}
	if p.Usage() != (verbs.Usage{}) {
		t.Errorf("after the failure usage is %+v", p.Usage())
	}
	deadline := time.Now().Add(patience)
	for ; verbstest.StatusBytes(t, "VmPin") != before; time.Sleep(10 * time.Millisecond) {
		if !late || time.Now().After(deadline) {
			t.Fatal("after the failure VmPin is higher than before")
		}
	}
}
