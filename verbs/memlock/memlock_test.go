package memlock_test

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"pinwheel/mem"
	"pinwheel/verbs"
	"pinwheel/verbs/memlock"
	"pinwheel/verbs/verbstest"
)

func TestMain(m *testing.M) {
	verbstest.Main(m, map[string]func() error{
		"low":       func() error { return expect(1<<20, 1<<20, "RLIMIT_MEMLOCK") },
		"huge":      func() error { return expect(1<<62, verbs.PhysicalBytes(), "physical memory") },
		"unlimited": func() error { return expect(unix.RLIM_INFINITY, verbs.PhysicalBytes(), "physical memory") },
	})
}

// expect sets the limit, as far as this process may, and looks at what Limit says.
func expect(rlimit uint64, want int64, wantSource string) error {
	if err := verbstest.LimitMemlock(rlimit); err != nil {
		return err
	}
	if n, source := memlock.Limit(); n != want || source != wantSource {
		return fmt.Errorf("%d by %s, want %d by %s", n, source, want, wantSource)
	}
	return nil
}

func TestLimitWithoutCapabilitiesIsRlimitMemlock(t *testing.T) {
	verbstest.RunChild(t, "low")
}

// inUserNamespace runs a child as root of a user namespace of its own: with
// all capabilities, but none that counts.
func inUserNamespace(t *testing.T, child string) {
	t.Helper()
	cmd := verbstest.Child(t, child)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	if errno, ok := errnoOf(err); ok &&
		(errno == unix.EPERM || errno == unix.ENOSPC || errno == unix.EACCES || errno == unix.EINVAL) {
		t.Skipf("no user namespaces here: %v", err)
	}
	if err != nil {
		t.Fatalf("child %q: %v\n%s", child, err, out)
	}
}

func TestRootOfAUserNamespaceIsLimited(t *testing.T) {
	inUserNamespace(t, "low")
}

func TestRlimitBeyondTheMachineIsItsMemory(t *testing.T) {
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &r); err != nil {
		t.Fatal(err)
	}
	if r.Max != unix.RLIM_INFINITY {
		if os.Geteuid() != 0 {
			t.Skip("only root can raise the hard limit of RLIMIT_MEMLOCK")
		}
		raised := unix.Rlimit{Cur: r.Cur, Max: unix.RLIM_INFINITY} // a child inherits it
		if err := unix.Setrlimit(unix.RLIMIT_MEMLOCK, &raised); err != nil {
			t.Skipf("the hard limit of RLIMIT_MEMLOCK can't be raised: %v", err)
		}
		t.Cleanup(func() {
			if err := unix.Setrlimit(unix.RLIMIT_MEMLOCK, &r); err != nil {
				t.Error(err)
			}
		})
	}
	verbstest.RunChild(t, "unlimited")
	verbstest.RunChild(t, "huge")
}

func TestCapabilityLiftsTheLimit(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs CAP_IPC_LOCK")
	}
	switch n, source := memlock.Limit(); source {
	case "physical memory":
		if n != verbs.PhysicalBytes() || n == mem.Unlimited {
			t.Errorf("limit %d with CAP_IPC_LOCK", n)
		}
	case "RLIMIT_MEMLOCK":
		t.Skip("root without CAP_IPC_LOCK, as in a container")
	default:
		t.Errorf("source %q", source)
	}
}

func errnoOf(err error) (errno syscall.Errno, ok bool) {
	ok = errors.As(err, &errno)
	return errno, ok
}
