package regcache

import (
	"bufio"
	"bytes"
	"io/fs"
	"math"
	"path"
	"strconv"
	"strings"

	"pinwheel/mem"
)

// reserveShare is the part of a memory cgroup's limit that is left for pages
// that are not pinned: one quarter. Pinned pages can't be reclaimed, and a group
// that is full of them is a case for the OOM killer.
const reserveShare = 4

// CgroupLimit returns how many bytes this process may pin for the sake of its
// memory cgroup: three quarters of the smallest limit on the way to the root,
// or mem.Unlimited. root is the root of the file system: os.DirFS("/").
// See cgroups(7), memory.max (v2) and memory.limit_in_bytes (v1).
func CgroupLimit(root fs.FS) int64 {
	limit := int64(mem.Unlimited)
	text, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return limit
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		// hierarchy:controllers:path
		f := strings.SplitN(lines.Text(), ":", 3)
		if len(f) != 3 {
			continue
		}
		mounts, file := []string{"sys/fs/cgroup", "sys/fs/cgroup/unified"}, "memory.max"
		if f[1] != "" {
			if !strings.Contains(","+f[1]+",", ",memory,") {
				continue
			}
			mounts, file = []string{"sys/fs/cgroup/memory"}, "memory.limit_in_bytes"
		}
		for _, mount := range mounts {
			for dir := path.Clean("/" + f[2]); ; dir = path.Dir(dir) {
				limit = min(limit, readLimit(root, path.Join(mount, dir, file)))
				if dir == "/" {
					break
				}
			}
		}
	}
	if limit == mem.Unlimited {
		return limit
	}
	return limit - limit/reserveShare
}

func readLimit(root fs.FS, name string) int64 {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return mem.Unlimited // no such limit, or none that we may know
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil || n >= math.MaxInt64/2 { // "max"; v1 writes no limit as a huge one
		return mem.Unlimited
	}
	return n
}
