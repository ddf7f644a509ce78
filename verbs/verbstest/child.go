package verbstest

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"pinwheel/internal/testwait"
)

// childEnv names the function that a re-executed test binary is to run.
const childEnv = "PINWHEEL_VERBSTEST_CHILD"

// Main is for TestMain of a package whose tests need processes of their own:
// in a child made by Child it runs the function of that name, which fails by
// returning an error, and otherwise the tests.
func Main(m *testing.M, children map[string]func() error) {
	name := os.Getenv(childEnv)
	if name == "" {
		os.Exit(m.Run())
	}
	if err := children[name](); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Child returns a command that runs the named function of Main in a process
// that holds no capability. Started by root it runs as a user that nothing else uses, of which nobody else's pinned
// memory counts. The test is skipped where it may pin next to nothing.
func Child(t testing.TB, name string) *exec.Cmd {
	t.Helper()
	NeedMemlock(t, leastMemlock)
	cmd := testwait.Command(t, "/proc/self/exe") // the binary's directory may be closed to that user
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), childEnv+"="+name)
	if os.Geteuid() == 0 {
		id := uint32(1_000_000 + os.Getpid()) // no login, and not that of a test in another process
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: id, Gid: id}}
	}
	return cmd
}

// RunChild runs Child and fails the test with its output if it fails.
func RunChild(t testing.TB, name string) {
	t.Helper()
	if out, err := Child(t, name).CombinedOutput(); err != nil {
		t.Fatalf("child %q: %v\n%s", name, err, out)
	}
}

// LimitMemlock lowers RLIMIT_MEMLOCK of this process, for children.
func LimitMemlock(bytes uint64) error {
	return unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: bytes, Max: bytes})
}
