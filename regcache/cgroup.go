package regcache

import (
	"io/fs"

	"pinwheel/internal/cgroup"
	"pinwheel/mem"
)

// reserveShare is the part of a memory cgroup's limit that is left for pages
// that are not pinned: one quarter. Pinned pages can't be reclaimed, and a group
// that is full of them is a case for the OOM killer.
const reserveShare = 4

// CgroupLimit returns how many bytes this process may pin for the sake of its
// memory cgroup: three quarters of its limit, or mem.Unlimited. root is the root of
// the file system: os.DirFS("/").
func CgroupLimit(root fs.FS) int64 {
	limit, file := cgroup.MemoryLimit(root)
	if file == "" {
		return mem.Unlimited
	}
	return limit - limit/reserveShare
}
