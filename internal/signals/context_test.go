package signals

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"pinwheel/internal/testwait"
	"pinwheel/internal/tools/command/commandtest"
)

// childEnv makes the test binary a command that cleans up after a signal.
const childEnv = "PINWHEEL_TEST_SIGNALS"

// hangs is its value for a command whose cleaning up never ends.
const hangs = "hangs"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		ctx, end := Context(context.Background())
		fmt.Println("ready")
		<-ctx.Done()
		if os.Getenv(childEnv) == hangs {
			select {}
		}
		fmt.Println("cleaned up")
		end()
		os.Exit(3)
	}
	os.Exit(m.Run())
}

// start starts this test binary as such a command. lines has what it says.
func start(t *testing.T, how string) (cmd *exec.Cmd, lines *bufio.Scanner) {
	t.Helper()
	cmd = testwait.Command(t, "/proc/self/exe")
	cmd.Env = append(os.Environ(), childEnv+"="+how)
	out, err := cmd.StdoutPipe()
	if err = errors.Join(err, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewScanner(out)
}

func TestProcessCleansUpAndEndsByTheSignal(t *testing.T) {
	testwait.Bound(t)
	commandtest.NotIgnored(t, unix.SIGHUP, unix.SIGINT)
	for _, s := range []syscall.Signal{unix.SIGHUP, unix.SIGINT, unix.SIGTERM} {
		cmd, lines := start(t, "y")
		for _, want := range []string{"ready", "cleaned up"} {
			if !lines.Scan() || lines.Text() != want {
				t.Errorf("%v: it says %q, want %q", s, lines.Text(), want)
			}
			_ = cmd.Process.Signal(s) // the second one, while it cleans up, changes nothing
		}
		_ = cmd.Wait() // the status says it all
		commandtest.EndedBy(t, cmd, s)
	}
}

func TestAnotherSignalEndsAProcessThatHangs(t *testing.T) {
	testwait.Bound(t)
	cmd, lines := start(t, hangs)
	if !lines.Scan() {
		t.Fatal("it is not ready")
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // the status says it all
		close(ended)
	}()
	testwait.Until(t, "the end", func() bool {
		_ = cmd.Process.Signal(unix.SIGTERM) // it may have ended
		select {
		case <-ended:
			return true
		default:
			return false
		}
	})
	commandtest.EndedBy(t, cmd, unix.SIGTERM)
}

func TestEndWithoutASignalReturns(t *testing.T) {
	ctx, end := Context(t.Context())
	end()
	if ctx.Err() == nil {
		t.Error("the context goes on")
	}
}
