package placement

import (
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"pinwheel/internal/cpulist"
)

const sysCPU = "sys/devices/system/cpu"

// ReadTopology reads the topology from sysfs. root is the root directory of
// the machine: os.DirFS("/"). Where a virtual machine lacks a file, nothing counts
// as shared. Without the list of online processors it fails.
// (Documentation/ABI/stable/sysfs-devices-system-cpu; core_cpus_list since
// Linux 5.3, thread_siblings_list before.)
func ReadTopology(root fs.FS) (*Topology, error) {
	online, err := cpulist.Read(root, sysCPU+"/online")
	if err != nil {
		return nil, fmt.Errorf("placement: topology: %w", err)
	}
	t := &Topology{cpus: make(map[int]cpuInfo, len(online))}
	for _, cpu := range online {
		if _, known := t.cpus[cpu]; !known {
			t.readCore(root, cpu, online)
		}
	}
	for _, list := range ReadNodes(root) {
		t.change(list, func(c *cpuInfo) { c.node = list })
	}
	t.change(efficient(root, online), func(c *cpuInfo) { c.kind = Efficient })
	t.change(quiet(root), func(c *cpuInfo) { c.quiet = true })
	return t, nil
}

// ReadNodes returns the processors of each NUMA node by its number: none for a node that has only memory, no node
// where the kernel tells of none.
func ReadNodes(root fs.FS) map[int][]int {
	const dir = "sys/devices/system/node/node"
	nodes := map[int][]int{}
	files, _ := fs.Glob(root, dir+"*/cpulist")
	for _, file := range files {
		number, _, _ := strings.Cut(strings.TrimPrefix(file, dir), "/")
		if n, err := strconv.Atoi(number); err == nil {
			nodes[n], _ = cpulist.Read(root, file)
		}
	}
	return nodes
}

// change changes those processors of a list that are online.
func (t *Topology) change(list []int, change func(*cpuInfo)) {
	for _, cpu := range list {
		if c, ok := t.cpus[cpu]; ok {
			change(&c)
			t.cpus[cpu] = c
		}
	}
}

// readCore reads what the processors of a core share with others. A node has hundreds of processors, each with a dozen
// files, and every rank reads them: so it reads those of one processor of each core, and of one for each L3 cache what
// all that share the cache have in common.
func (t *Topology) readCore(root fs.FS, cpu int, online []int) {
	dir := fmt.Sprintf("%s/cpu%d", sysCPU, cpu)
	c := cpuInfo{core: coreOf(root, cpu)}
	for _, other := range t.cpus {
		if slices.Contains(other.l3, cpu) {
			c.l3, c.socket = other.l3, other.socket
			break
		}
	}
	inL3 := len(c.l3) > 0
	if !inL3 {
		c.socket, _ = readInt(root, dir+"/topology/physical_package_id")
	}
	indexes, _ := fs.Glob(root, dir+"/cache/index*")
	for _, index := range indexes {
		switch level, _ := readInt(root, index+"/level"); {
		case level == 2:
			c.l2, _ = cpulist.Read(root, index+"/shared_cpu_list")
		case level == 3 && !inL3:
			c.l3, _ = cpulist.Read(root, index+"/shared_cpu_list")
		}
	}
	t.cpus[cpu] = c
	for _, sibling := range c.core {
		if slices.Contains(online, sibling) {
			t.cpus[sibling] = c
		}
	}
}

// coreOf returns the processors of a processor's core, itself alone if nothing is known.
func coreOf(root fs.FS, cpu int) []int {
	for _, file := range []string{"core_cpus_list", "thread_siblings_list"} {
		if list, err := cpulist.Read(root, fmt.Sprintf("%s/cpu%d/topology/%s", sysCPU, cpu, file)); err == nil {
			return list
		}
	}
	return []int{cpu}
}

// efficient returns the cores that were not built for speed. Where the kernel knows how much each core can do
// (cpu_capacity: Arm and RISC-V), these can do less than four fifths of what the biggest can; cores of one kind
// may differ a little. Intel's kinds are known by the devices that count their events.
func efficient(root fs.FS, online []int) (list []int) {
	capacity, most := map[int]int{}, 0
	for _, cpu := range online {
		if n, err := readInt(root, fmt.Sprintf("%s/cpu%d/cpu_capacity", sysCPU, cpu)); err == nil {
			capacity[cpu], most = n, max(most, n)
		}
	}
	for cpu, n := range capacity {
		if 5*n < 4*most {
			list = append(list, cpu)
		}
	}
	for _, device := range []string{"cpu_atom", "cpu_lowpower"} {
		cpus, _ := cpulist.Read(root, "sys/devices/"+device+"/cpus")
		list = append(list, cpus...)
	}
	return list
}

// quiet returns the processors that are isolated from load balancing (isolcpus=, isolated partitions of cpusets)
// or free of ticks (nohz_full=). A kernel without such a setting has no file, or "(null)" in it.
func quiet(root fs.FS) (list []int) {
	for _, file := range []string{"isolated", "nohz_full"} {
		cpus, _ := cpulist.Read(root, sysCPU+"/"+file)
		list = append(list, cpus...)
	}
	return list
}

func readInt(root fs.FS, name string) (int, error) {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}
