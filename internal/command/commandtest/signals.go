// Package commandtest has what the tests of commands have in common.
package commandtest

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// EndsBy sends a signal to a command that was started, and checks that it ends
// by it, and soon.
func EndsBy(t testing.TB, cmd *exec.Cmd, s syscall.Signal) {
	t.Helper()
	began := time.Now()
	if err := cmd.Process.Signal(s); err != nil {
		t.Fatalf("%.200q ended by itself: %v", cmd.String(), err)
	}
	late := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	_ = cmd.Wait() // the status says it all
	if status := cmd.ProcessState.Sys().(syscall.WaitStatus); !status.Signaled() || status.Signal() != s {
		t.Errorf("%.200q, %v: %v", cmd.String(), s, cmd.ProcessState)
	}
	if took := time.Since(began); took > 10*time.Second { // a second, on a machine that does nothing else
		t.Errorf("%.200q ended after %v", cmd.String(), took)
	}
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
