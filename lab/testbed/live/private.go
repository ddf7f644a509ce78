package main

import (
	"os"
	"runtime"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// alone marks the second start of this program, in a mount namespace of its own.
const alone = "--alone"

// privateSharedMemory starts this program anew with an empty /dev/shm, so that
// whatever appears there is of its own jobs. Where that needs privileges that are
// missing it goes on with the one of the machine.
func privateSharedMemory() {
	if slices.Contains(os.Args, alone) {
		return
	}
	runtime.LockOSThread() // which alone unshares, and which execve(2) keeps
	defer runtime.UnlockOSThread()
	if unix.Unshare(unix.CLONE_NEWNS) != nil ||
		unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, "") != nil ||
		unix.Mount("live", sharedMemory, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777") != nil {
		return
	}
	_ = syscall.Exec("/proc/self/exe", append([]string{os.Args[0], alone}, os.Args[1:]...), os.Environ())
}
