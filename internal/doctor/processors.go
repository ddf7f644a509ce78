package doctor

import (
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"pinwheel/helper"
	"pinwheel/internal/settings"
	"pinwheel/mem"
)

var nearness = map[helper.Distance]string{
	helper.SameCPU: "the same one", helper.SameCore: "on the same core", helper.SharedL2: "sharing its L2 cache", helper.SharedL3: "sharing its L3 cache",
	helper.SamePackage: "in the same package", helper.OtherPackage: "in another package",
}

func (m *Machine) processors() section {
	s := section{name: "Processors and the helper thread"}
	topology, err := helper.ReadTopology(m.Root)
	if err != nil {
		s.add(Note, "topology", "mount sysfs on /sys", "no helper thread can be placed: %v", err)
		return s
	}
	online := topology.Online()
	cores := map[int]bool{}
	for _, cpu := range online {
		cores[topology.Core(cpu)[0]] = true
	}
	s.add(OK, "online", "", "%s: %d processors, %d cores", list(online), len(online), len(cores))
	if allowed, err := m.AllowedCPUs(); err != nil {
		s.add(Note, "allowed", "", "%v", err)
	} else {
		s.add(OK, "allowed", "", "%s", list(allowed))
	}
	m.helper(&s, topology)
	m.claims(&s)
	return s
}

func (m *Machine) helper(s *section, topology *helper.Topology) {
	const name = "helper"
	if m.Settings.HelperCPU != settings.Auto {
		s.add(OK, name, "", "on processor %d, as PINWHEEL_HELPER_CPU says", m.Settings.HelperCPU)
		return
	}
	policy, err := helper.ParseIdlePolicy(m.Settings.IdlePolicy)
	if err == nil && policy == helper.Off {
		s.add(Note, name, "unset PINWHEEL_IDLE_POLICY to have one", "none, as PINWHEEL_IDLE_POLICY=off says")
		return
	}
	place := helper.Placement{Parked: true, CPU: helper.AnyCPU}
	if err == nil {
		place, err = m.Place(policy)
	}
	here := m.CurrentCPU()
	switch {
	case err != nil:
		s.add(Note, name, "", "%v", err)
	case place.Parked:
		s.add(Note, name, "leave a core of each node without a rank (fewer ranks, or their binding), or PINWHEEL_IDLE_POLICY=aggressive",
			"none: no idle core now")
	case place.CPU == helper.AnyCPU:
		s.add(OK, name, "", "anywhere")
	default:
		s.add(OK, name, "", "now on processor %d, idle, %s for a rank on processor %d", place.CPU, nearness[topology.Distance(here, place.CPU)], here)
	}
}

func (m *Machine) claims(s *section) {
	const name = "shared memory"
	if _, err := fs.Stat(m.Root, "dev/shm"); err != nil {
		s.add(Note, name, "mount a tmpfs on /dev/shm (containers: --shm-size, or that of the host)", "no /dev/shm: helpers of a node can't agree on cores")
		return
	}
	all, err := m.Claims()
	if err != nil {
		s.add(Note, name, "", "%v", err)
		return
	}
	var b strings.Builder
	for _, c := range all {
		where := "parked"
		if c.CPU != helper.AnyCPU {
			where = "on processor " + strconv.Itoa(c.CPU)
		}
		fmt.Fprintf(&b, "\nprocess %d: %s, %s registered", c.Owner.PID, where, mem.FormatBytes(uint64(c.Bytes)))
	}
	s.add(OK, name, "", "helpers of this user on this node: %d%s", len(all), b.String())
}

// list writes processors as the kernel does: 0-3,8.
func list(cpus []int) string {
	var b strings.Builder
	for i := 0; i < len(cpus); i++ {
		first := i
		for i+1 < len(cpus) && cpus[i+1] == cpus[i]+1 {
			i++
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(cpus[first]))
		if i > first {
			b.WriteString("-" + strconv.Itoa(cpus[i]))
		}
	}
	return b.String()
}
