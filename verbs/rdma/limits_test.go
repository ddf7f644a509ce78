//go:build linux && cgo

package rdma_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"pinwheel/mem"
	"pinwheel/regcache"
	"pinwheel/verbs"
	"pinwheel/verbs/rdma"
	"pinwheel/verbs/rdma/arena"
	"pinwheel/verbs/rdma/rdmatest"
	"pinwheel/verbs/verbstest"
)

// The shortages are made in child processes: limits are a process's own.
func TestMain(m *testing.M) {
	verbstest.Main(m, map[string]func() error{
		"memlock":      underMemlock,
		"memlock zero": withoutMemlock,
		"regions":      underRegionLimit,
	})
}

const (
	memlockBytes = 1 << 20
	regionLimit  = 40 // uverbs objects of the process, the protection domain among them
)

// TestMemlockLimitIsSurvived: RLIMIT_MEMLOCK of 1 MiB, no CAP_IPC_LOCK, and
// a working set four times as large.
func TestMemlockLimitIsSurvived(t *testing.T) {
	rdmatest.Need(t)
	verbstest.RunChild(t, "memlock")
}

func underMemlock() error {
	if err := verbstest.LimitMemlock(memlockBytes); err != nil {
		return err
	}
	p, err := rdma.Open(rdma.Options{})
	if err != nil {
		return err
	}
	if l := p.Limits(); l.MaxPinnedBytes != memlockBytes || l.PinnedSource != "RLIMIT_MEMLOCK" {
		return fmt.Errorf("limits are %+v, want %d bytes by RLIMIT_MEMLOCK", l, memlockBytes)
	}
	memory, err := arena.New(4 * memlockBytes)
	if err != nil {
		return err
	}
	whole := memory.Range()
	_, err = p.Register(whole, verbs.AccessLocalWrite)
	if !errors.Is(err, verbs.ErrPinnedMemory) {
		return fmt.Errorf("registering %v gave %v, want ErrPinnedMemory", whole, err)
	}
	// A cache that knows the limit stays below it; one that was told nothing of
	// it learns from the failed registration.
	for _, max := range []int64{0, mem.Unlimited} {
		// A piece that does not divide the limit: the rings of lab/testbed/softverbs take some of it too.
		if err := useInTurn(p, whole, 96<<10, regcache.Options{MaxBytes: max}, verbs.ErrPinnedMemory); err != nil {
			return fmt.Errorf("cache with a limit of %d: %w", max, err)
		}
	}
	return p.Close()
}

func TestMemlockLimitOfZeroIsExplained(t *testing.T) {
	rdmatest.Need(t)
	verbstest.RunChild(t, "memlock zero")
}

func withoutMemlock() error {
	if err := verbstest.LimitMemlock(0); err != nil {
		return err
	}
	p, err := rdma.Open(rdma.Options{})
	if err != nil {
		return err
	}
	memory, err := arena.New(mem.PageSize)
	if err != nil {
		return err
	}
	if _, err := p.Register(memory.Range(), 0); !errors.Is(err, verbs.ErrPinnedMemory) {
		return fmt.Errorf("got %v, want ErrPinnedMemory", err)
	}
	return p.Close()
}

// TestRegionLimitIsSurvived: the rdma controller of cgroups refuses more than
// a few regions, as a device does that is out of keys.
func TestRegionLimitIsSurvived(t *testing.T) {
	if os.Getenv("TESTBED_NODES") == "" {
		t.Skip("makes a cgroup: runs in the test bed only")
	}
	rdmatest.Need(t)
	group := filepath.Join("/sys/fs/cgroup", "pinwheel-"+strconv.Itoa(os.Getpid()))
	if err := os.Mkdir(group, 0o755); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(group)
	limit := fmt.Sprintf("rxe0 hca_handle=max hca_object=%d", regionLimit)
	if err := os.WriteFile(filepath.Join(group, "rdma.max"), []byte(limit), 0o644); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	inGroup := exec.Command("/bin/sh", "-c", `echo $$ > "$0/cgroup.procs" && exec "$@"`, group, self)
	inGroup.Env = verbstest.Child(t, "regions").Env
	if out, err := inGroup.CombinedOutput(); err != nil || string(out) != survived {
		t.Fatalf("%v: %s", err, out)
	}
}

func underRegionLimit() error {
	p, err := rdma.Open(rdma.Options{})
	if err != nil {
		return err
	}
	memory, err := arena.New(4 << 20)
	if err != nil {
		return err
	}
	var held []verbs.Region
	for err == nil {
		var g verbs.Region
		if g, err = p.Register(memory.Range(), 0); err == nil {
			held = append(held, g)
		}
	}
	if !errors.Is(err, verbs.ErrRegions) || len(held) < regionLimit-5 || len(held) >= regionLimit {
		return fmt.Errorf("after %d regions: %v, want ErrRegions just below %d", len(held), err, regionLimit)
	}
	for _, g := range held {
		if err := p.Deregister(g); err != nil {
			return err
		}
	}
	if err := useInTurn(p, memory.Range(), 32<<10, regcache.Options{}, verbs.ErrRegions); err != nil {
		return err
	}
	if err := p.Close(); err != nil {
		return err
	}
	fmt.Print(survived)
	return nil
}

// survived is what the child says at its end: that the shell has run it at all.
const survived = "survived"

// useInTurn acquires piece after piece of r through a cache, several in use at
// a time, three times over: more than the limit that is in force lets it keep.
// Then it uses more at a time than that, which must fail with the error short,
// and work again after.
func useInTurn(p *rdma.Provider, r mem.Range, piece uint64, o regcache.Options, short error) error {
	cache, err := regcache.New(p, o)
	if err != nil {
		return err
	}
	pieces := int(r.Len() / piece)
	at := func(i int) mem.Range {
		start := r.Start + mem.Addr(uint64(i%pieces)*piece)
		return mem.Range{Start: start, End: start + mem.Addr(piece)}
	}
	var inUse []regcache.Ref
	release := func(keep int) {
		for _, ref := range inUse[:max(0, len(inUse)-keep)] {
			cache.Release(ref)
		}
		inUse = inUse[max(0, len(inUse)-keep):]
	}
	for i := range 3 * pieces {
		ref, _, err := cache.Acquire(at(i), verbs.AccessLocalWrite)
		if err != nil {
			return fmt.Errorf("request %d: %w", i, err)
		}
		inUse = append(inUse, ref)
		release(4)
	}
	if s := cache.Stats(); s.Evicted < uint64(pieces) {
		return fmt.Errorf("nothing had to be evicted: %+v", s)
	}
	for i := range pieces {
		ref, _, err := cache.Acquire(at(i), verbs.AccessLocalWrite)
		if err != nil {
			if !errors.Is(err, short) {
				return fmt.Errorf("with %d in use: %w, want %w", len(inUse), err, short)
			}
			break
		}
		inUse = append(inUse, ref)
	}
	if len(inUse) == pieces+4 {
		return errors.New("everything fits at once: the limit is not in force")
	}
	release(0)
	ref, _, err := cache.Acquire(at(0), verbs.AccessLocalWrite)
	if err != nil {
		return fmt.Errorf("after the shortage: %w", err)
	}
	cache.Release(ref)
	if err := cache.Close(); err != nil {
		return err
	}
	if u := p.Usage(); u != (verbs.Usage{}) {
		return fmt.Errorf("the closed cache left %+v", u)
	}
	if pinned, err := rdmatest.PinnedBytes(os.Getpid()); pinned != 0 || err != nil {
		return fmt.Errorf("the closed cache left %d bytes pinned (%v)", pinned, err)
	}
	return nil
}
