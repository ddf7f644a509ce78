// Package commandtest has what the tests of commands have in common.
package commandtest

import (
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// attempts is how often a command may have done its work before the signal comes.
const attempts = 5

// EndsBy starts a command and sends it a signal when start returns, and checks that
// it ends by it, and soon. On a processor that others keep busy it may be done
// first: then it is started again.
func EndsBy(t testing.TB, s syscall.Signal, start func() *exec.Cmd) {
	t.Helper()
	for attempt := 1; ; attempt++ {
		cmd := start()
		began := time.Now()
		if err := cmd.Process.Signal(s); err != nil {
			t.Fatalf("%.200q ended by itself: %v", cmd.String(), err)
		}
		late := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait() // the status says it all
		late.Stop()
		if cmd.ProcessState.Success() && attempt < attempts {
			continue
		}
		EndedBy(t, cmd, s)
		if took := time.Since(began); took > 10*time.Second { // a second, on a machine that does nothing else
			t.Errorf("%.200q ended after %v", cmd.String(), took)
		}
		return
	}
}

// EndedBy checks that a command that was waited for has ended by a signal.
func EndedBy(t testing.TB, cmd *exec.Cmd, s syscall.Signal) {
	t.Helper()
	if status := cmd.ProcessState.Sys().(syscall.WaitStatus); !status.Signaled() || status.Signal() != s {
		t.Errorf("%.200q, %v: %v", cmd.String(), s, cmd.ProcessState)
	}
}

// NotIgnored makes the processes that a test starts begin with the default
// action of the signals. A shell that starts "make test &" ignores SIGINT, and
// what is ignored stays so in all descendants.
func NotIgnored(t testing.TB, signals ...os.Signal) {
	handled := make(chan os.Signal, 1) // a handler becomes the default action at execve(2)
	signal.Notify(handled, signals...)
	t.Cleanup(func() { signal.Stop(handled) })
}

// FullPipe returns the writing end of a pipe that has no room and a reader
// that reads nothing: a command that prints to it waits for ever.
func FullPipe(t testing.TB) *os.File {
	t.Helper()
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_NONBLOCK|unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := unix.Write(ends[1], make([]byte, 4096)); err != nil {
			break
		}
	}
	r, w := os.NewFile(uintptr(ends[0]), "pipe"), os.NewFile(uintptr(ends[1]), "pipe")
	t.Cleanup(func() {
		r.Close()
		w.Close()
	})
	return w
}
