package uring_test

import (
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// forkSleeper forks a child that shares no memory with this process and does
// nothing until it is killed. The Go runtime does not survive fork: the child
// may only make raw system calls.
func forkSleeper(t *testing.T) int {
	t.Helper()
	pid := rawFork()
	if pid < 0 {
		t.Fatal("fork failed")
	}
	return pid
}

//go:norace
func rawFork() int {
	pid, _, errno := syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 {
		return -1
	}
	if pid == 0 {
		for {
			syscall.RawSyscall6(unix.SYS_PPOLL, 0, 0, 0, 0, 0, 0) // until a signal
		}
	}
	return int(pid)
}
