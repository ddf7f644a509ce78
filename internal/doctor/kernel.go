package doctor

import (
	"strings"

	"pinwheel/vmwatch"
)

func (m *Machine) kernel() section {
	s := section{name: "Kernel features"}
	for _, sysctl := range []struct{ file, name, meaning string }{
		{"proc/sys/kernel/io_uring_disabled", "io_uring", "kernel.io_uring_disabled (0: for all, 1: for a group, 2: for none)"},
		{"proc/sys/vm/unprivileged_userfaultfd", "userfaultfd", "vm.unprivileged_userfaultfd (0: faults of user mode only, unless privileged)"},
		{"proc/sys/kernel/unprivileged_bpf_disabled", "BPF", "kernel.unprivileged_bpf_disabled (0: for all, else for the privileged)"},
	} {
		if value := m.read(sysctl.file); value != "" {
			s.add(OK, sysctl.name, "", "%s is %s", sysctl.meaning, value)
		} else {
			s.add(OK, sysctl.name, "", "this kernel has no switch %s", sysctl.meaning[:strings.IndexByte(sysctl.meaning, ' ')])
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
	s := section{name: "How changes of memory mappings are noticed"}
	r, err := m.Watch(m.Settings.Watch)
	if err != nil {
		s.add(Problem, m.Settings.Watch, "choose another with PINWHEEL_WATCH, or leave it to auto", "%v", err)
		return s
	}
	for _, a := range r.Attempts {
		if a.Err != nil {
			s.add(Note, a.Mechanism.String(), "", "%v", a.Err)
		}
	}
	value := strings.Join(append([]string{"used"}, r.Gaps...), "\n")
	if r.Chosen == vmwatch.None && m.Settings.Watch != "none" {
		s.add(Problem, "none", "allow userfaultfd or BPF, in a container by its seccomp profile", "%s", value)
	} else {
		s.add(OK, r.Chosen.String(), "", "%s", value)
	}
	return s
}
