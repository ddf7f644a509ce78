package testwait

import (
	"os"
	"reflect"
	"testing"

	"golang.org/x/sys/unix"
)

// SkipUnderRace skips a test in which the race detector can find nothing that it does not find in others of its
// package, as why says, and that takes several times as long under it.
func SkipUnderRace(t testing.TB, why string) {
	t.Helper()
	if underRace {
		t.Skip("not under the race detector: " + why)
	}
}

// NeedOwnMemory skips a test of what reads the memory of its process by process_vm_readv(2), without which builds can't be
// told apart, where the kernel does not let it.
func NeedOwnMemory(t testing.TB) {
	t.Helper()
	var from, to [1]byte
	local := []unix.Iovec{{Base: &to[0], Len: 1}}
	remote := []unix.RemoteIovec{{Base: reflect.ValueOf(&from).Pointer(), Len: 1}}
	if _, err := unix.ProcessVMReadv(os.Getpid(), local, remote, 0); err != nil {
		t.Skipf("process_vm_readv: %v", err)
	}
}
