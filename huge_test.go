package pinwheel

import (
	"errors"
	"fmt"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"pinwheel/internal/testwait"
	"pinwheel/mem"
	"pinwheel/verbs"
	"pinwheel/verbs/verbstest"
	"pinwheel/vmwatch"
)

// hugeRanges begin with 64 KiB of good memory, or are reserved addresses.
func hugeRanges(t *testing.T, good mem.Range) map[string]mem.Range {
	all := map[string]mem.Range{"wrapped around": {Start: good.Start, End: good.Start - 1}}
	for _, shift := range []int{33, 42, 46, 47, 56, 62, 63} {
		all[fmt.Sprintf("2^%d", shift)] = verbstest.Part(good, 0, 1<<shift)
	}
	all["2^64-1 less the start"] = mem.Range{Start: good.Start, End: ^mem.Addr(0)}
	for name, prot := range map[string]int{"4 TiB writable": unix.PROT_READ | unix.PROT_WRITE,
		"4 TiB inaccessible": unix.PROT_NONE} {
		b, err := unix.Mmap(-1, 0, 1<<42, prot, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
		if err != nil {
			t.Logf("without %s: %v", name, err) // RLIMIT_AS
			continue
		}
		t.Cleanup(func() { _ = unix.Munmap(b) })
		all[name] = mem.RangeOf(b)
	}
	return all
}

// TestHugeRequestsAreRefusedAndForgotten asks for what nobody can pin, with
// every mechanism and provider: an error, soon, and all goes on as before.
func TestHugeRequestsAreRefusedAndForgotten(t *testing.T) {
	if verbs.PhysicalBytes() >= 1<<42 {
		t.Skip("this machine could pin that")
	}
	cases := map[string]Options{
		"on-demand":      {ProviderName: "uring", Policy: OnDemand},
		"without budget": {ProviderName: "mlock", BudgetBytes: mem.Unlimited},
		"rdma":           {ProviderName: "rdma", Watch: "auto"},
		"bpf":            {ProviderName: "uring", Watch: "bpf"},
		"auto":           {ProviderName: "mlock", Watch: "auto", BudgetBytes: mem.Unlimited},
	}
	for _, provider := range []string{"uring", "mlock"} {
		for _, watch := range []string{"", "uffd", "pfn", "none"} {
			cases[provider+" "+watch] = Options{ProviderName: provider, Watch: watch}
		}
	}
	for name, o := range cases {
		o.Costs, o.IdlePolicy = verbs.DefaultCosts, IdleIgnore
		t.Run(name, func(t *testing.T) { refuseHuge(t, o) })
	}
}

func refuseHuge(t *testing.T, o Options) {
	testwait.Bound(t) // to walk through such a range takes longer
	m, err := New(o)
	if errors.Is(err, vmwatch.ErrUnavailable) {
		t.Skip(err)
	}
	if err == nil {
		t.Cleanup(func() { m.Close() })
	}
	verbstest.Available(t, err)
	th, err := m.Thread()
	if err != nil {
		t.Fatal(err)
	}
	defer th.Close()
	n := 16 * mem.PageSize
	verbstest.NeedPinned(t, m.provider, int64(n))
	_, good := verbstest.Map(t, n)
	var u Use
	use := func() {
		t.Helper()
		if err := th.Acquire(&u, good, access, 0, nil); err != nil {
			t.Fatal(err)
		}
		th.Release(&u)
	}
	use()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for name, r := range hugeRanges(t, good) {
		err := th.Acquire(&u, r, access, 0, nil)
		if !isRefusal(err) {
			t.Errorf("%s: %v", name, err)
		}
		if err := m.Invalidate(r); err != nil {
			t.Errorf("%s: invalidate: %v", name, err)
		}
		use()
	}
	runtime.ReadMemStats(&after)
	if bytes := after.TotalAlloc - before.TotalAlloc; bytes > 64<<20 {
		t.Errorf("allocated %s", mem.FormatBytes(bytes))
	}
	if m.plain.Load() {
		t.Error("switched to plain registration")
	}
	// The helper may just be giving back what was invalidated under it.
	testwait.Until(t, "nothing else stays pinned", func() bool { return pinned(m) <= int64(good.Len()) })
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}

func isRefusal(err error) bool {
	for _, kind := range []error{verbs.ErrNotMapped, verbs.ErrPinnedMemory, verbs.ErrRegionSize,
		mem.ErrOverflow, mem.ErrEmpty} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}
