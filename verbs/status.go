package verbs

import (
	"os"
	"sync"

	"pinwheel/internal/machine"
	"pinwheel/mem"
)

// StatusBytes returns, in bytes, a field of /proc/self/status that is given in kB; see
// proc_pid_status(5). "VmPin" counts the memory of this process that RDMA drivers and io_uring
// have pinned, "VmLck" the memory that mlock has locked. Compare them with Usage. A call
// reads the whole file, which takes about 30 us.
func StatusBytes(field string) (int64, error) {
	return machine.Bytes(os.DirFS("/"), "proc/self/status", field)
}

// PhysicalBytes returns the size of this machine's memory, or mem.Unlimited if it can't be read.
// Nobody can pin more. Safe for concurrent use.
var PhysicalBytes = sync.OnceValue(func() int64 {
	n, err := machine.Bytes(os.DirFS("/"), "proc/meminfo", "MemTotal")
	if err != nil {
		return mem.Unlimited
	}
	return n
})
