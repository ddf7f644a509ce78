package outfiletest

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// Minor numbers of devices with the major number 1, as in devices.txt of the kernel's documentation.
const (
	Null = 3
	Full = 7
)

// Device returns the name of /dev/null or /dev/full. Root gets a node of its
// own in a temporary directory: a test that fails must not replace that of the machine.
func Device(t testing.TB, minor uint32) string {
	t.Helper()
	if os.Geteuid() != 0 {
		return map[uint32]string{Null: "/dev/null", Full: "/dev/full"}[minor]
	}
	path := filepath.Join(t.TempDir(), "device")
	if err := unix.Mknod(path, unix.S_IFCHR|0o666, int(unix.Mkdev(1, minor))); err != nil {
		t.Skipf("needs a device node: %v", err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Skipf("needs a directory where device nodes can be opened: %v", err)
	}
	f.Close()
	return path
}
