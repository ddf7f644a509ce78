// Package cgroup reads the limits that control groups set for this process: memory and processor time.
// Both versions are known, with and without a cgroup namespace (cgroups(7), cgroup_namespaces(7)).
//
// Every function takes the root of the file system: os.DirFS("/"). A limit that can't be read counts as none.
package cgroup

import (
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// group is a control group that this process is in.
type group struct {
	path string // within its hierarchy, as /proc/self/cgroup gives it
	dir  string // its directory below the root of the file system
	v2   bool
}

// groupsOf returns the groups of this process that have a controller: its own first, then those
// around it as far as they are mounted here. A container often sees its own group only.
func groupsOf(root fs.FS, controller string) []group {
	own, v2 := ownGroup(root, controller)
	if own == "" {
		return nil
	}
	text, _ := fs.ReadFile(root, "proc/self/mountinfo")
	for line := range strings.Lines(string(text)) {
		m, ok := parseMount(line)
		if !ok || m.v2 != v2 || !v2 && !slices.Contains(m.controllers, controller) {
			continue
		}
		inside, ok := m.inside(own)
		if !ok {
			continue
		}
		var groups []group
		for {
			groups = append(groups, group{own, path.Join(m.point, inside)[1:], v2})
			if inside == "/" {
				return groups
			}
			own, inside = path.Dir(own), path.Dir(inside)
		}
	}
	return nil
}

// ownGroup returns the path of this process in the hierarchy that has a controller. A controller that is in
// a hierarchy of version 1 is not in that of version 2. Without control groups the path is empty.
func ownGroup(root fs.FS, controller string) (own string, v2 bool) {
	text, _ := fs.ReadFile(root, "proc/self/cgroup")
	for line := range strings.Lines(string(text)) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3) // hierarchy:controllers:path
		switch {
		case len(f) != 3 || !path.IsAbs(f[2]):
		case f[1] == "":
			own, v2 = f[2], true
		case slices.Contains(strings.Split(f[1], ","), controller):
			return f[2], false
		}
	}
	return own, v2
}

// mount is a line of /proc/self/mountinfo (proc_pid_mountinfo(5)) that mounts control groups.
type mount struct {
	root, point string // the group that is mounted, and where
	v2          bool
	controllers []string // version 1 only
}

var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

func parseMount(line string) (m mount, ok bool) {
	f := strings.Fields(line) // id parent device root point options [tags] - type source options
	dash := slices.Index(f, "-")
	if dash < 6 || len(f) < dash+4 {
		return m, false
	}
	m.root, m.point, m.v2 = unescape.Replace(f[3]), unescape.Replace(f[4]), f[dash+1] == "cgroup2"
	m.controllers = strings.Split(f[dash+3], ",")
	return m, path.IsAbs(m.point) && (m.v2 || f[dash+1] == "cgroup")
}

// inside returns where a group is below the mount. Paths are relative to the cgroup namespace of this process. So a
// mount from outside of the namespace has a root such as "/..": of its groups, only the root is known to be ours.
func (m mount) inside(own string) (string, bool) {
	if m.root == "/" {
		return own, !strings.HasPrefix(own+"/", "/../") // then this process is outside of its namespace
	}
	if rest, ok := strings.CutPrefix(own, m.root); ok && (rest == "" || rest[0] == '/') {
		return path.Clean("/" + rest), true
	}
	return "/", strings.Trim(m.root, "/.") == ""
}

// readInts returns the numbers of a file, in order; "max" is -1. It fails if the file holds anything else.
func readInts(root fs.FS, name string) ([]int64, bool) {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return nil, false
	}
	var list []int64
	for _, field := range strings.Fields(string(text)) {
		n, err := strconv.ParseInt(field, 10, 64)
		if field == "max" {
			n, err = -1, nil
		}
		if err != nil {
			return nil, false
		}
		list = append(list, n)
	}
	return list, len(list) > 0
}
