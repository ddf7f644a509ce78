package helper

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Topology says which processors are online and what they share. It is
// immutable.
type Topology struct {
	cpus map[int]cpuInfo
}

type cpuInfo struct {
	core   []int // processors of the same core, itself included
	l2, l3 []int // processors that share the cache; empty where unknown
	socket int
}

// Distance is how far apart two processors are, by what they share.
type Distance int

// Distances, nearest first.
const (
	SameCPU Distance = iota
	SameCore
	SharedL2
	SharedL3
	SamePackage
	OtherPackage
)

const sysCPU = "sys/devices/system/cpu"

// ReadTopology reads the topology from sysfs. root is the root directory of
// the machine: os.DirFS("/"). Where a virtual machine lacks a file, nothing counts
// as shared. Without the list of online processors it fails.
// (Documentation/ABI/stable/sysfs-devices-system-cpu; core_cpus_list since
// Linux 5.3, thread_siblings_list before.)
func ReadTopology(root fs.FS) (*Topology, error) {
	online, err := readCPUList(root, sysCPU+"/online")
	if err != nil {
		return nil, fmt.Errorf("helper: topology: %w", err)
	}
	t := &Topology{cpus: make(map[int]cpuInfo, len(online))}
	for _, cpu := range online {
		dir := fmt.Sprintf("%s/cpu%d", sysCPU, cpu)
		c := cpuInfo{core: []int{cpu}}
		if list, err := readCPUList(root, dir+"/topology/core_cpus_list"); err == nil {
			c.core = list
		} else if list, err := readCPUList(root, dir+"/topology/thread_siblings_list"); err == nil {
			c.core = list
		}
		c.socket, _ = readInt(root, dir+"/topology/physical_package_id")
		indexes, _ := fs.Glob(root, dir+"/cache/index*")
		for _, index := range indexes {
			level, err := readInt(root, path.Join(index, "level"))
			shared, err2 := readCPUList(root, path.Join(index, "shared_cpu_list"))
			if errors.Join(err, err2) != nil {
				continue
			}
			switch level {
			case 2:
				c.l2 = shared
			case 3:
				c.l3 = shared
			}
		}
		t.cpus[cpu] = c
	}
	return t, nil
}

// Online returns the processors in ascending order.
func (t *Topology) Online() []int {
	all := make([]int, 0, len(t.cpus))
	for cpu := range t.cpus {
		all = append(all, cpu)
	}
	slices.Sort(all)
	return all
}

// Core returns the processors of a processor's core, itself included, in
// ascending order.
func (t *Topology) Core(cpu int) []int {
	if c, ok := t.cpus[cpu]; ok {
		return c.core
	}
	return []int{cpu}
}

// Distance returns how far apart two processors are.
func (t *Topology) Distance(a, b int) Distance {
	ca, ok := t.cpus[a]
	cb, ok2 := t.cpus[b]
	switch {
	case a == b:
		return SameCPU
	case !ok || !ok2:
		return OtherPackage
	case slices.Contains(ca.core, b):
		return SameCore
	case slices.Contains(ca.l2, b):
		return SharedL2
	case slices.Contains(ca.l3, b):
		return SharedL3
	case ca.socket == cb.socket:
		return SamePackage
	default:
		return OtherPackage
	}
}

// maxCPU bounds the numbers that a list may hold: CPU_SETSIZE of <sched.h>
// is 1024, and no kernel is built for more than 8192.
const maxCPU = 8191

// ParseCPUList reads the kernel's format of processor lists, "0-3,8,10-11",
// and returns the numbers in ascending order.
func ParseCPUList(s string) ([]int, error) {
	s = strings.TrimSpace(s)
	if s == "" {
		return nil, nil
	}
	var list []int
	for part := range strings.SplitSeq(s, ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		lo, err := strconv.Atoi(first)
		hi, err2 := strconv.Atoi(last)
		if errors.Join(err, err2) != nil || lo < 0 || hi < lo || hi > maxCPU {
			return nil, fmt.Errorf("%q is not a list of processors", s)
		}
		for cpu := lo; cpu <= hi; cpu++ {
			list = append(list, cpu)
		}
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

func readCPUList(root fs.FS, name string) ([]int, error) {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return nil, err
	}
	list, err := ParseCPUList(string(text))
	if err != nil {
		return nil, fmt.Errorf("/%s: %w", name, err)
	}
	return list, nil
}

func readInt(root fs.FS, name string) (int, error) {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}
