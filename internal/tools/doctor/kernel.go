package doctor

import (
	"strings"

	"pinwheel/vmwatch"
)

// sysctl is a switch of a kernel feature; Documentation/admin-guide/sysctl.
type sysctl struct {
	feature, name string
	values        map[string]string // what they mean; a value that is not there is shown as it is
	note          string            // the values that take something from Pinwheel
	since         string
}

var sysctls = []sysctl{
	{"io_uring", "kernel.io_uring_disabled", map[string]string{
		"0": "for all", "1": "for kernel.io_uring_group and the privileged", "2": "for nobody"}, "12", "6.6"},
	{"userfaultfd", "vm.unprivileged_userfaultfd", map[string]string{
		"0": "for all, but faults in the kernel only for the privileged", "1": "for all"}, "", "5.2"},
	{"BPF", "kernel.unprivileged_bpf_disabled", map[string]string{
		"0": "for all", "1": "for the privileged, until the next boot", "2": "for the privileged"}, "", "4.4"},
}

func (m *Machine) kernel() section {
	s := section{name: "Kernel features"}
	for _, c := range sysctls {
		value := m.read("proc/sys/" + strings.ReplaceAll(c.name, ".", "/"))
		meaning, known := c.values[value]
		switch {
		case value == "":
			s.add(OK, c.feature, "", "no %s, which is there since Linux %s", c.name, c.since)
		case !known:
			s.add(Note, c.feature, "", "%s is %s", c.name, value)
		case strings.Contains(c.note, value):
			s.add(Note, c.feature, "sysctl -w "+c.name+"=0, if you may", "%s (%s is %s)", meaning, c.name, value)
		default:
			s.add(OK, c.feature, "", "%s (%s is %s)", meaning, c.name, value)
		}
	}
	if err := m.Barrier(); err != nil {
		s.add(Note, "membarrier", "", "%v", err)
	} else {
		s.add(OK, "membarrier", "", "works: a hit needs no memory barrier")
	}
	switch sealed, err := m.Sealing(); {
	case err != nil:
		s.add(Note, "mseal", "", "%v", err)
	case sealed:
		s.add(OK, "mseal", "", "works: arenas can't be unmapped")
	default:
		s.add(Note, "mseal", "", "this kernel does not seal mappings (Linux 6.10); arenas are watched like other memory")
	}
	return s
}

func (m *Machine) mappings() section {
	s := section{name: "Mapping watch"}
	r, err := m.Watch(m.Settings.Watch, m.Settings.Watchd)
	if err != nil {
		s.add(Problem, m.Settings.Watch, "choose another with PINWHEEL_WATCH, or leave it to auto", "%v", err)
		return s
	}
	for _, a := range r.Attempts {
		if a.Err != nil {
			s.add(Note, a.Mechanism.String(), "", "%v", a.Err)
		}
	}
	value := strings.Join(append([]string{"will be used"}, r.Gaps...), "\n")
	if r.Chosen == vmwatch.None && m.Settings.Watch != "none" {
		s.add(Problem, "none", "allow userfaultfd or BPF, in a container by its seccomp profile", "%s", value)
	} else {
		s.add(OK, r.Chosen.String(), "", "%s", value)
	}
	switch path := m.Settings.Watchd; {
	case path == "off":
		s.add(Note, "service", "", "not asked (PINWHEEL_WATCHD is off)")
	case r.Service:
		s.add(OK, "service", "", "watches for this user, at %s", path)
	default:
		s.add(Note, "service", "for users who may not load BPF programs, as an administrator of the node: "+
			"systemctl enable --now pinwheel-watchd; a container mounts its /run/pinwheel",
			"not used: none at %s, or it does not serve this user", path)
	}
	return s
}
