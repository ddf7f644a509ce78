package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"pinwheel/internal/prefault"
	"pinwheel/mem"
	"pinwheel/placement"
	"pinwheel/regcache"
	"pinwheel/verbs"
	"pinwheel/verbs/uring"
	"pinwheel/verbs/verbstest"
)

const memlock = 4 << 20 // RLIMIT_MEMLOCK of the children

func TestMain(m *testing.M) {
	verbstest.Main(m, map[string]func() error{"limited": prepareUnderALimit, "confined": prepareOnOneProcessor})
}

func TestPrepareAsAUserWithALimit(t *testing.T) {
	verbstest.Available(t, uring.Probe())
	verbstest.NeedOwnUser(t)
	verbstest.RunChild(t, "limited")
}

func TestPrepareOnOneProcessorHasOneThread(t *testing.T) {
	verbstest.Available(t, uring.Probe())
	verbstest.NeedOwnUser(t)
	verbstest.RunChild(t, "confined")
}

// prepareURing prepares n bytes over io_uring, and returns how much of them was touched and pinned.
func prepareURing(n uint64, threads int) (p Prepared, touched uint64, pinned int64, err error) {
	if err := verbstest.LimitMemlock(memlock); err != nil {
		return p, 0, 0, err
	}
	provider, err := uring.Open(uring.Options{})
	if err != nil {
		return p, 0, 0, err
	}
	defer provider.Close()
	c, err := regcache.New(provider, regcache.Options{})
	if err != nil {
		return p, 0, 0, err
	}
	defer c.Close()
	b, err := verbstest.MapSmallPages(n)
	if err != nil {
		return p, 0, 0, err
	}
	before, err := verbs.StatusBytes("VmPin")
	if err != nil {
		return p, 0, 0, err
	}
	o := prefault.Options{Threads: threads, Progress: func(done uint64) { touched = done }}
	p, err = Prepare(context.Background(), c, provider.Limits(), mem.RangeOf(b), verbs.AccessLocalWrite, o)
	after, failed := verbs.StatusBytes("VmPin")
	return p, touched, after - before, errors.Join(err, failed)
}

// prepareUnderALimit: what can't fit is refused before it is touched, in one line, and what fits is registered.
func prepareUnderALimit() error {
	p, touched, pinned, err := prepareURing(memlock+1<<20, 1)
	if !errors.Is(err, verbs.ErrPinnedMemory) || touched != 0 || pinned != 0 || p.Kept ||
		!strings.Contains(err.Error(), "RLIMIT_MEMLOCK permits 4.0 MiB") || strings.Contains(err.Error(), "\n") {
		return fmt.Errorf("beyond the limit: %+v, touched %d, pinned %d: %w", p, touched, pinned, err)
	}
	p, touched, pinned, err = prepareURing(memlock/2, 1)
	if err != nil || touched != memlock/2 || pinned != memlock/2 || !p.Kept {
		return fmt.Errorf("below the limit: %+v, touched %d, pinned %d: %w", p, touched, pinned, err)
	}
	return nil
}

func prepareOnOneProcessor() error {
	runtime.LockOSThread()
	var one unix.CPUSet
	one.Set(placement.Affinity(0)[0])
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		return err
	}
	if p, _, _, err := prepareURing(memlock/2, 8); err != nil || p.Threads != 1 {
		return fmt.Errorf("%+v: %w", p, err)
	}
	return nil
}
