package signals

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"pinwheel/internal/testwait"
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

func TestProcessCleansUpAndEndsByTheSignal(t *testing.T) {
	testwait.Bound(t)
	handled := make(chan os.Signal, 1) // what is ignored here would be so in the child
	signal.Notify(handled, unix.SIGHUP, unix.SIGINT)
	defer signal.Stop(handled)
	for _, s := range []syscall.Signal{unix.SIGHUP, unix.SIGINT, unix.SIGTERM} {
		cmd := testwait.Command(t, "/proc/self/exe")
		cmd.Env = append(os.Environ(), childEnv+"=y")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for _, want := range []string{"ready", "cleaned up"} {
			if !lines.Scan() || lines.Text() != want {
				t.Errorf("%v: it says %q, want %q", s, lines.Text(), want)
			}
			_ = cmd.Process.Signal(s) // the second one, while it cleans up, changes nothing
		}
		_ = cmd.Wait() // the status says it all
		if status := cmd.ProcessState.Sys().(syscall.WaitStatus); !status.Signaled() || status.Signal() != s {
			t.Errorf("%v: %v", s, cmd.ProcessState)
		}
	}
}

func TestAnotherSignalEndsAProcessThatHangs(t *testing.T) {
	testwait.Bound(t)
	cmd := testwait.Command(t, "/proc/self/exe")
	cmd.Env = append(os.Environ(), childEnv+"="+hangs)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if lines := bufio.NewScanner(out); !lines.Scan() {
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
	if status := cmd.ProcessState.Sys().(syscall.WaitStatus); !status.Signaled() || status.Signal() != unix.SIGTERM {
		t.Error(cmd.ProcessState)
	}
}

func TestEndWithoutASignalReturns(t *testing.T) {
	ctx, end := Context(t.Context())
	end()
	if ctx.Err() == nil {
		t.Error("the context goes on")
	}
}
