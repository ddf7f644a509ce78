package doctor

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"pinwheel/internal/cgroup"
	"pinwheel/mem"
	"pinwheel/verbs"
)

// smallLimit is what a working set of large messages easily needs.
const smallLimit = 64 << 20 // 64 MiB

const raiseMemlock = "raise the limit: ulimit -l unlimited; for all: memlock in /etc/security/limits.conf; for batch " +
	"jobs: LimitMEMLOCK=infinity in the unit of slurmd or sshd"

func (m *Machine) providers() section {
	s := section{name: "Providers"}
	working := 0
	for _, p := range m.Providers {
		if err := p.Probe(); err != nil {
			s.add(Note, p.Name, "", "%v", err)
			continue
		}
		working++
		s.add(OK, p.Name, "", "works%s", m.devices(p.Name))
	}
	if working == 0 {
		s.add(Problem, "any", raiseMemlock, "nothing here can register memory")
	}
	return s
}

// devices lists RDMA devices for the provider that uses them.
func (m *Machine) devices(provider string) string {
	if provider != "rdma" {
		return ""
	}
	all, err := m.Devices()
	if err != nil {
		return ", " + err.Error()
	}
	var b strings.Builder
	for _, d := range all {
		state := "down"
		if d.Active {
			state = fmt.Sprintf("active, MTU %d", d.MTU)
		}
		fmt.Fprintf(&b, "\n%s port %d: %s, %s", d.Name, d.Port, d.Link, state)
	}
	return b.String()
}

// provider returns the one that would be used, or an error that says why none.
func (m *Machine) provider() (Provider, error) {
	if m.Settings.Provider == "sim" {
		return Provider{Name: "sim",
			Limits: func() (verbs.Limits, error) { return verbs.Limits{MaxPinnedBytes: mem.Unlimited}, nil }}, nil
	}
	err := fmt.Errorf("no provider %q", m.Settings.Provider)
	for _, p := range m.Providers {
		if m.Settings.Provider != "auto" && m.Settings.Provider != p.Name {
			continue
		}
		if err = p.Probe(); err == nil {
			return p, nil
		}
	}
	return Provider{}, err
}

func (m *Machine) limits() section {
	s := section{name: "Memory limits"}
	if p, err := m.provider(); err == nil {
		switch l, err := p.Limits(); {
		case err != nil:
			s.add(Note, "process", "", "%v", err)
		case l.MaxPinnedBytes < smallLimit:
			s.add(Note, "process", raiseMemlock, "%s (%s), as %s says; that is little",
				mem.FormatBytes(uint64(l.MaxPinnedBytes)), l.PinnedSource, p.Name)
		default:
			s.add(OK, "process", "", "%s (%s, by provider %s)", size(l.MaxPinnedBytes),
				cmp.Or(l.PinnedSource, "no limit"), p.Name)
		}
	}
	if r, err := m.Memlock(); err == nil {
		s.add(OK, "RLIMIT_MEMLOCK", "", "soft %s, hard %s", rlimit(r.Cur), rlimit(r.Max))
	}
	if n, file := cgroup.MemoryLimit(m.Root); file != "" {
		s.add(OK, "control group", "", "%s for all memory (%s)", mem.FormatBytes(uint64(n)), file)
	} else {
		s.add(OK, "control group", "", "no memory limit")
	}
	return s
}

func size(n int64) string {
	if n == mem.Unlimited {
		return "unlimited"
	}
	return mem.FormatBytes(uint64(n))
}

func rlimit(n uint64) string {
	if n > math.MaxInt64 { // RLIM_INFINITY
		return "unlimited"
	}
	return mem.FormatBytes(n)
}
