package mlock_test

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"pinwheel/mem"
	"pinwheel/verbs"
	"pinwheel/verbs/mlock"
	"pinwheel/verbs/verbstest"
)

const (
	write   = verbs.AccessLocalWrite
	memlock = 1 << 20 // RLIMIT_MEMLOCK of the children
)

func TestMain(m *testing.M) {
	verbstest.Main(m, map[string]func() error{
		"limit":     meetTheLimit,
		"forbidden": forbidden,
	})
}

func open(t testing.TB) *mlock.Provider {
	t.Helper()
	p, err := mlock.Open()
	verbstest.Available(t, err)
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return p
}

func TestConformance(t *testing.T) {
	verbstest.TestProvider(t, func(t testing.TB) verbs.Provider { return open(t) },
		verbstest.WithoutCall(unix.SYS_MUNLOCK, syscall.ENOMEM), verbstest.ChecksMappings)
}

func TestUsageEqualsVmLckToThePage(t *testing.T) { verbstest.ExactUsage(t, open(t), "VmLck") }

// A failed registration must not unlock what others hold, and must not leave
// locked what it reached before the hole.
func TestFailedRegistrationChangesNothing(t *testing.T) {
	before := verbstest.StatusBytes(t, "VmLck")
	p := open(t)
	page := mem.PageSize
	_, r := verbstest.Map(t, 8*page)
	verbstest.Unmap(t, verbstest.Part(r, 6*page, page))
	g, err := p.Register(verbstest.Part(r, page, 2*page), write)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Register(r, write); !errors.Is(err, verbs.ErrNotMapped) {
		t.Errorf("got %v, want ErrNotMapped", err)
	}
	if locked := verbstest.StatusBytes(t, "VmLck") - before; locked != int64(2*page) {
		t.Errorf("%d bytes are locked, want the two pages of the region that is left", locked)
	}
	if err := p.Deregister(g); err != nil {
		t.Fatal(err)
	}
}

func TestMeetsRlimitMemlockWithoutCapabilities(t *testing.T) { verbstest.RunChild(t, "limit") }
func TestNoLimitToUseIsNotPermitted(t *testing.T)            { verbstest.RunChild(t, "forbidden") }

func meetTheLimit() error {
	if err := verbstest.LimitMemlock(memlock); err != nil {
		return err
	}
	p, err := mlock.Open()
	if err != nil {
		return err
	}
	if l := p.Limits(); l.MaxPinnedBytes != memlock || l.PinnedSource != "RLIMIT_MEMLOCK" {
		return fmt.Errorf("limits %+v", l)
	}
	b, err := verbstest.MapSmallPages(2 * memlock)
	if err != nil {
		return err
	}
	all := mem.RangeOf(b)
	g, err := p.Register(verbstest.Part(all, 0, memlock), write)
	if err != nil {
		return err
	}
	last := verbstest.Part(all, memlock, mem.PageSize)
	if _, err := p.Register(last, write); !errors.Is(err, verbs.ErrPinnedMemory) || !errors.Is(err, syscall.ENOMEM) {
		return fmt.Errorf("one page too many: %v, want ErrPinnedMemory", err)
	}
	if err := p.Deregister(g); err != nil {
		return err
	}
	// Below the limit again, the same errno has other reasons.
	if err := unix.Mprotect(b[memlock:memlock+int(mem.PageSize)], unix.PROT_NONE); err != nil {
		return err
	}
	if _, err := p.Register(last, write); !errors.Is(err, verbs.ErrNotMapped) {
		return fmt.Errorf("inaccessible page: %v, want ErrNotMapped", err)
	}
	return p.Close()
}

func forbidden() error {
	if err := verbstest.LimitMemlock(0); err != nil {
		return err
	}
	_, err := mlock.Open()
	if !errors.Is(err, verbs.ErrNotPermitted) || strings.Contains(err.Error(), "\n") {
		return fmt.Errorf("got %v, want ErrNotPermitted in one line", err)
	}
	return nil
}

func BenchmarkRegister(b *testing.B) {
	p := open(b)
	for _, n := range []uint64{16 << 10, 1 << 20} {
		b.Run(mem.FormatBytes(n), func(b *testing.B) {
			_, r := verbstest.Map(b, n)
			for b.Loop() {
				g, err := p.Register(r, write)
				if err != nil {
					b.Fatal(err)
				}
				if err := p.Deregister(g); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
