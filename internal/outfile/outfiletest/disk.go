// Package outfiletest has full disks, for tests of what writes files.
package outfiletest

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// FreeBytes is what fits onto the disk of OnSmallDisk, beside what is there.
const FreeBytes = 4 << 10

// notMounted is the exit status of the script below if it can't begin.
const notMounted = 99

// onSmallDisk mounts a disk on a directory, has a file "old" made there, runs
// the command and lists what is left, on descriptor 3.
const onSmallDisk = `mount -t tmpfs -o size=64k pinwheel-test "$0" && printf old > "$0"/old && head -c 57344 /dev/zero > "$0"/filler || exit 99
"$@"; status=$?
cd "$0" && for f in $(find . -type f ! -name filler); do echo "$f $(head -c 20 "$f" | tr '\0' '.')" >&3; done
exit $status`

// OnSmallDisk runs a command with a disk mounted on dir that has room for
// FreeBytes, which nobody else sees. The disk has a file "old", whose content is
// its name. It returns the regular files that are on it in the end, each as
// "./NAME CONTENT", with the first bytes of it. The test is skipped where this user may not mount.
func OnSmallDisk(t testing.TB, cmd *exec.Cmd, dir string) (left []string) {
	t.Helper()
	list, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer list.Close()
	inner := append([]string{cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/bin/sh"
	cmd.Args = append([]string{"sh", "-c", onSmallDisk, dir}, inner...)
	cmd.ExtraFiles = []*os.File{w}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	cmd.SysProcAttr.Unshareflags = syscall.CLONE_NEWNS // makes the mounts private to the child
	err = cmd.Start()
	w.Close()
	if err != nil {
		t.Skipf("a mount namespace is needed: %v", err)
	}
	var b bytes.Buffer
	_, readErr := b.ReadFrom(list)
	_ = cmd.Wait() // the caller looks at ProcessState
	if cmd.ProcessState.ExitCode() == notMounted {
		t.Skip("mounting a tmpfs is not permitted")
	}
	if readErr != nil {
		t.Fatal(readErr)
	}
	return strings.Split(strings.TrimSpace(b.String()), "\n")
}
