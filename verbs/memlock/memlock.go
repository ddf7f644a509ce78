// Package memlock tells how much memory this process may pin or lock, in the
// terms of verbs.Limits: RLIMIT_MEMLOCK or, with CAP_IPC_LOCK, all there is.
//
// # Caveats
//
// The kernel compares different counters with that one limit: io_uring what
// all processes of the user have pinned through io_uring, mlock what this
// process has locked, RDMA drivers what this process has pinned. What of the
// limit is left can't be read, except for mlock.
package memlock

import (
	"math"
	"os"

	"golang.org/x/sys/unix"

	"pinwheel/mem"
	"pinwheel/verbs"
)

// initialUserNamespace is the link target of /proc/self/ns/user in the initial
// user namespace: PROC_USER_INIT_INO of <linux/proc_ns.h>, fixed since Linux 3.8.
const initialUserNamespace = "user:[4026531837]"

// Limit returns the bytes that may be pinned and what sets that bound, for
// people. It looks again at every call.
func Limit() (bytes int64, source string) {
	bytes, source = permitted()
	if all := verbs.PhysicalBytes(); all < bytes {
		return all, "physical memory"
	}
	return bytes, source
}

// permitted is Limit on a machine with memory without end.
func permitted() (bytes int64, source string) {
	if unlimited() {
		return mem.Unlimited, "CAP_IPC_LOCK"
	}
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &r); err != nil {
		return 0, "RLIMIT_MEMLOCK (" + err.Error() + ")"
	}
	if r.Cur > math.MaxInt64 { // RLIM_INFINITY
		return mem.Unlimited, "RLIMIT_MEMLOCK"
	}
	return int64(r.Cur), "RLIMIT_MEMLOCK"
}

// unlimited reports whether this thread holds CAP_IPC_LOCK where the kernel
// asks for it, in the initial user namespace (capable(CAP_IPC_LOCK)): root of
// a rootless container does not.
func unlimited() bool {
	if ns, err := os.Readlink("/proc/self/ns/user"); err != nil || ns != initialUserNamespace {
		return false
	}
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&hdr, &data[0]); err != nil {
		return false
	}
	return data[0].Effective&(1<<unix.CAP_IPC_LOCK) != 0
}
