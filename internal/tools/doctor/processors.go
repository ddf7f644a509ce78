package doctor

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"pinwheel/helper"
	"pinwheel/internal/cgroup"
	"pinwheel/internal/cpulist"
	"pinwheel/internal/settings"
	"pinwheel/mem"
	"pinwheel/placement"
)

var nearness = map[placement.Distance]string{
	placement.SameCPU:      "the same one",
	placement.SameCore:     "on the same core",
	placement.SharedL2:     "sharing its L2 cache",
	placement.SharedL3:     "sharing its L3 cache",
	placement.SameNode:     "on the same NUMA node",
	placement.SamePackage:  "in the same package",
	placement.OtherPackage: "in another package",
}

const processorsSection = "Processors and the helper thread"

// processors says which processors this process has, and how much of their time.
func (m *Machine) processors() section {
	s := section{name: processorsSection}
	topology, err := placement.ReadTopology(m.Root)
	if err != nil {
		s.add(Note, "topology", "mount sysfs on /sys", "no helper thread can be placed: %v", err)
	} else {
		s.add(OK, "online", "", "%s", online(topology))
	}
	if allowed, err := m.AllowedCPUs(); err != nil {
		s.add(Note, "allowed", "", "%v", err)
	} else {
		text := cpulist.Format(allowed)
		switch cpuset, file := cgroup.CPUSet(m.Root); {
		case file == "":
		case slices.Equal(allowed, cpuset):
			text += ", the whole cpuset (" + file + ")"
		default:
			text += fmt.Sprintf(", of the cpuset %s (%s)", cpulist.Format(cpuset), file)
		}
		s.add(OK, "allowed", "", "%s", text)
	}
	switch l := cgroup.NewCPUQuota(m.Root).Limit(); {
	case l.File == "":
		s.add(OK, "quota", "", "no limit of processor time")
	case l.Throttled < someThrottling:
		s.add(OK, "quota", "", "%.3g processors (%s)", l.Processors, l.File)
	default:
		s.add(Note, "quota", "ranks stand still for the rest of such a period: raise the quota (docker: --cpus, Kubernetes:"+
			" limits.cpu), or use fewer threads",
			"%.3g processors (%s), used up in %.0f %% of its periods", l.Processors, l.File, 100*l.Throttled)
	}
	return s
}

// someThrottling is the share of the periods that is worth a note.
const someThrottling = 0.01

// online describes the processors of a machine.
func online(t *placement.Topology) string {
	all := t.Online()
	cores, efficient := map[int]bool{}, map[int]bool{}
	for _, cpu := range all {
		first := t.Core(cpu)[0]
		cores[first] = true
		if t.Kind(cpu) == placement.Efficient {
			efficient[first] = true
		}
	}
	text := fmt.Sprintf("%s: %d processors, %d cores", cpulist.Format(all), len(all), len(cores))
	if len(efficient) > 0 {
		text += fmt.Sprintf(", %d of them efficient ones", len(efficient))
	}
	if quiet := t.Quiet(); len(quiet) > 0 {
		text += fmt.Sprintf("; isolated or without ticks: %s", cpulist.Format(quiet))
	}
	return text
}

// helpers says where a helper would run now, and where others do.
func (m *Machine) helpers() section {
	s := section{name: processorsSection}
	if topology, err := placement.ReadTopology(m.Root); err == nil {
		m.helper(&s, topology)
		m.claims(&s)
	}
	return s
}

func (m *Machine) helper(s *section, topology *placement.Topology) {
	const name = "helper"
	if m.Settings.HelperCPU != settings.Auto {
		s.add(OK, name, "", "on processor %d, as PINWHEEL_HELPER_CPU says", m.Settings.HelperCPU)
		return
	}
	policy, err := placement.ParseIdlePolicy(m.Settings.IdlePolicy)
	if err == nil && policy == placement.Off {
		s.add(Note, name, "unset PINWHEEL_IDLE_POLICY to have one", "none, as PINWHEEL_IDLE_POLICY=off says")
		return
	}
	place := helper.Placement{Parked: true, CPU: helper.AnyCPU}
	if err == nil {
		place, err = m.Place(policy, m.Settings.Cost > 0)
	}
	here := m.CurrentCPU()
	switch {
	case err != nil:
		s.add(Note, name, "", "%v", err)
	case place.Parked:
		s.add(Note, name,
			"leave a core of each node without a rank (fewer ranks, or their binding), or PINWHEEL_IDLE_POLICY=aggressive",
			"none: no idle core now")
	case place.Shared:
		s.add(OK, name, "", "no idle core now: it sleeps, and memory is registered on demand, for at most %s of the rank's time (PINWHEEL_COST)",
			settings.FormatShare(m.Settings.Cost))
	case place.CPU == helper.AnyCPU:
		s.add(OK, name, "", "anywhere")
	default:
		s.add(OK, name, "", "now on processor %d, idle, %s for a rank on processor %d", place.CPU,
			nearness[topology.Distance(here, place.CPU)], here)
	}
}

func (m *Machine) claims(s *section) {
	const name = "shared memory"
	all, err := m.Claims()
	if err != nil {
		s.add(Note, name, "", "processes of a job can't agree on cores and budgets: %v", err)
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
