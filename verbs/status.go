package verbs

import (
	"os"
	"sync"

	"pinwheel/internal/machine"
	"pinwheel/mem"
)

// StatusBytes returns, in bytes, a field of /proc/self/status that is given in
// kB; see proc_pid_status(5). "VmPin" is what RDMA drivers and io_uring have
// pinned of this process, "VmLck" what mlock has locked, each as the kernel
// counts it: compare with Usage. It reads the whole file: some 30 us.
func StatusBytes(field string) (int64, error) {
	return machine.Bytes(os.DirFS("/"), "proc/self/status", field)
}

// PhysicalBytes returns the size of this machine's memory: nobody can pin
// more. Where that can't be read it is mem.Unlimited. Safe for concurrent use.
var PhysicalBytes = sync.OnceValue(func() int64 {
	n, err := machine.Bytes(os.DirFS("/"), "proc/meminfo", "MemTotal")
	if err != nil {
		return mem.Unlimited
	}
	return n
})
