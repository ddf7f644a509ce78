package uring_test

import (
	"bufio"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pinwheel/internal/testwait"
	"pinwheel/mem"
	"pinwheel/verbs"
	"pinwheel/verbs/uring"
	"pinwheel/verbs/verbstest"
)

const memlock = 1 << 20 // RLIMIT_MEMLOCK of the children

func TestMain(m *testing.M) {
	verbstest.Main(m, map[string]func() error{
		"limit":  meetTheLimit,
		"hold":   holdMost,
		"eperm":  func() error { return denied(syscall.EPERM, verbs.ErrNotPermitted, "seccomp") },
		"enosys": func() error { return denied(syscall.ENOSYS, verbs.ErrUnsupported, "kernel built without it") },
		"emfile": noDescriptors,
	})
}

func TestWorksWithoutCapabilitiesUpToRlimitMemlock(t *testing.T) {
	verbstest.Available(t, uring.Probe())
	verbstest.NeedOwnUser(t)
	verbstest.RunChild(t, "limit")
}

func TestSeccompFilterIsNotPermitted(t *testing.T) {
	verbstest.Available(t, uring.Probe())
	verbstest.RunChild(t, "eperm")
}

func TestMissingSystemCallIsUnsupported(t *testing.T) {
	verbstest.Available(t, uring.Probe())
	verbstest.RunChild(t, "enosys")
}

func TestNoDescriptorLeftIsSaid(t *testing.T) {
	verbstest.Available(t, uring.Probe())
	verbstest.RunChild(t, "emfile")
}

// meetTheLimit pins page after page until the limit stops it.
func meetTheLimit() error {
	if err := verbstest.LimitMemlock(memlock); err != nil {
		return err
	}
	p, err := uring.Open(uring.Options{})
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
	var held []verbs.Region
	for off := uint64(0); ; off += mem.PageSize {
		g, err := p.Register(verbstest.Part(all, off, mem.PageSize), write)
		if errors.Is(err, verbs.ErrPinnedMemory) && errors.Is(err, syscall.ENOMEM) {
			break
		}
		if err != nil {
			return err
		}
		held = append(held, g)
	}
	// The ring's own pages count as well on some kernels.
	if n := p.Usage().PinnedBytes; n > memlock || n < memlock-64<<10 {
		return fmt.Errorf("pinned %d bytes under a limit of %d", n, memlock)
	}
	if _, err := p.Register(all, write); !errors.Is(err, verbs.ErrPinnedMemory) {
		return fmt.Errorf("twice the limit: %v, want ErrPinnedMemory", err)
	}
	if err := p.Deregister(held[0]); err != nil {
		return err
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) { // see verbstest.ReleasesLate
		_, err := p.Register(held[0].Range, write)
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("after a page was released: %w", err)
		}
	}
	return p.Close()
}

// holdMost pins three quarters of the limit, says so, and waits to be killed.
func holdMost() error {
	if err := verbstest.LimitMemlock(memlock); err != nil {
		return err
	}
	p, err := uring.Open(uring.Options{})
	if err != nil {
		return err
	}
	b, err := verbstest.MapSmallPages(memlock * 3 / 4)
	if err != nil {
		return err
	}
	if _, err := p.Register(mem.RangeOf(b), write); err != nil {
		return err
	}
	fmt.Println("pinned")
	time.Sleep(patience)
	return errors.New("was not killed")
}

// The limit is the user's, so what a killed process left pinned would stop the next.
func TestKilledProcessLeavesNothingPinned(t *testing.T) {
	testwait.Bound(t)
	verbstest.Available(t, uring.Probe())
	verbstest.NeedOwnUser(t)
	hold := func() (string, error) {
		cmd := verbstest.Child(t, "hold")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		line, _ := bufio.NewReader(out).ReadString('\n')
		err = cmd.Process.Kill()
		_ = cmd.Wait() // "signal: killed"
		return strings.TrimSpace(line), err
	}
	for i := range 4 {
		// The kernel takes a dead process's rings down in a worker: a little later.
		for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
			line, err := hold()
			if err != nil {
				t.Fatal(err)
			}
			if line == "pinned" {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("process %d: %s", i, line)
			}
		}
	}
}

// denied opens a provider where the system call fails, as in a container.
func denied(errno syscall.Errno, kind error, why string) error {
	if err := verbstest.DenySystemCall(unix.SYS_IO_URING_SETUP, errno); err != nil {
		return err
	}
	err := uring.Probe()
	if !errors.Is(err, kind) || !errors.Is(err, errno) {
		return fmt.Errorf("got %v, want %v", err, kind)
	}
	if s := err.Error(); !strings.Contains(s, why) || strings.Contains(s, "\n") {
		return fmt.Errorf("message %q is not one line with %q", s, why)
	}
	return nil
}

// noDescriptors fills a provider's first table, where there is no descriptor
// left for a second ring, and then none for a provider.
func noDescriptors() error {
	p, err := uring.Open(uring.Options{})
	if err != nil {
		return err
	}
	b, err := verbstest.MapSmallPages(mem.PageSize)
	if err != nil {
		return err
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 64, Max: 64}); err != nil {
		return err
	}
	for {
		if _, err := unix.Open("/", unix.O_RDONLY, 0); err != nil {
			break
		}
	}
	for range 1024 {
		if _, err := p.Register(mem.RangeOf(b), write); err != nil {
			return err
		}
	}
	if _, err := p.Register(mem.RangeOf(b), write); !errors.Is(err, verbs.ErrRegions) || !errors.Is(err, syscall.EMFILE) {
		return fmt.Errorf("second ring: %v, want ErrRegions and EMFILE", err)
	}
	if err := uring.Probe(); !errors.Is(err, verbs.ErrRegions) ||
		!strings.Contains(err.Error(), "no file descriptor left") {
		return fmt.Errorf("probe: %v", err)
	}
	return p.Close()
}

func TestProbeAndOpenAgree(t *testing.T) {
	p, err := uring.Open(uring.Options{})
	if (err == nil) != (uring.Probe() == nil) {
		t.Errorf("Probe says %v, Open %v", uring.Probe(), err)
	}
	if err == nil {
		p.Close()
	}
}
