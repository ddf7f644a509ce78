package machine

import (
	"io/fs"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
)

// CgroupLimit returns the smallest memory limit of the control groups that this process
// is in, and the file that sets it; "" if there is none. Registered memory counts. See
// cgroups(7): memory.max (v2) and memory.limit_in_bytes (v1).
func CgroupLimit(root fs.FS) (bytes int64, file string) {
	text, _ := fs.ReadFile(root, "proc/self/cgroup") // without it there are no groups
	for line := range strings.Lines(string(text)) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3) // hierarchy:controllers:path
		if len(f) != 3 {
			continue
		}
		var mounts []string
		name := "memory.max"
		switch {
		case f[1] == "":
			mounts = []string{"sys/fs/cgroup", "sys/fs/cgroup/unified"}
		case slices.Contains(strings.Split(f[1], ","), "memory"):
			mounts, name = []string{"sys/fs/cgroup/memory"}, "memory.limit_in_bytes"
		}
		for _, mount := range mounts {
			for dir := path.Clean("/" + f[2]); ; dir = path.Dir(dir) {
				at := path.Join(mount, dir, name)
				text, _ := fs.ReadFile(root, at) // no such limit, or none that we may know
				n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
				// v2 writes "max" for no limit, v1 a huge number.
				if err == nil && n < math.MaxInt64/2 && (file == "" || n < bytes) {
					bytes, file = n, "/"+at
				}
				if dir == "/" {
					break
				}
			}
		}
	}
	return bytes, file
}
