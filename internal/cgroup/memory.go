package cgroup

import (
	"io/fs"
	"math"
)

// MemoryLimit returns the smallest memory limit of the control groups that this process is in, and the
// file that sets it; "" if there is none. Registered memory counts: memory.max of version 2,
// memory.limit_in_bytes of version 1.
func MemoryLimit(root fs.FS) (bytes int64, file string) {
	for _, g := range groupsOf(root, "memory") {
		name := g.dir + "/memory.limit_in_bytes"
		if g.v2 {
			name = g.dir + "/memory.max"
		}
		n, ok := readInts(root, name)
		// Version 2 writes "max" for no limit, version 1 a huge number.
		if ok && n[0] >= 0 && n[0] < math.MaxInt64/2 && (file == "" || n[0] < bytes) {
			bytes, file = n[0], "/"+name
		}
	}
	return bytes, file
}
