package doctor

import (
	"regexp"
	"strings"

	"pinwheel/internal/caches"
)

// transport is a communication library that programs may use here.
type transport struct {
	name    string
	sonames []string // the first that is there counts
	command []string // prints the version
	version *regexp.Regexp
	cache   string // what is known of its own registration cache
}

var transports = []transport{
	{"libibverbs", []string{"libibverbs.so.1"}, nil, nil, "Pinwheel sees the registrations that go through it"},
	{"libfabric", []string{"libfabric.so.1"}, []string{"fi_info", "--version"}, regexp.MustCompile(`libfabric: (\S+)`),
		"its cache is turned off by FI_MR_CACHE_MAX_COUNT=0, that of EFA by FI_EFA_MR_MAX_CACHED_COUNT=1"},
	{"UCX", []string{"libucp.so.0"}, []string{"ucx_info", "-v"}, caches.UCXVersion,
		"its caches are turned off by UCX_RCACHE_ENABLE=n, UCX_IB_REG_METHODS=direct"},
	{"Open MPI", []string{"libmpi.so.40", "libmpi.so.20"}, []string{"ompi_info", "--version"},
		regexp.MustCompile(`Open MPI v?(\S+)`), "its cache is turned off by mpi_leave_pinned=0"},
	{"MPICH", []string{"libmpich.so.12", "libmpi.so.12"}, []string{"mpichversion"},
		regexp.MustCompile(`(?i)MPICH2? Version:\s*(\S+)`), ""},
}

func (m *Machine) transports() section {
	s := section{name: "Transports"}
	mpi := false
	for _, t := range transports {
		file := m.fileOf(t)
		if file == "" {
			s.add(OK, t.name, "", "not found")
			continue
		}
		mpi = mpi || strings.Contains(t.name, "MPI")
		value := file
		if version := m.versionOf(t); version != "" {
			value = version + ", " + file
		}
		if t.cache != "" {
			value += "\n" + t.cache
		}
		s.add(OK, t.name, "", "%s", value)
	}
	for _, d := range caches.Drivers {
		if m.exists(d.Device) {
			s.add(Note, d.Provider, "set FI_MR_CACHE_MAX_COUNT=0 for jobs that use another provider of libfabric",
				"%s: it registers memory without verbs, and Pinwheel sees none of that; libfabric's cache stays on", d.Device)
		}
	}
	if !mpi {
		s.add(Note, "MPI", "load the module of an MPI library, or set LD_LIBRARY_PATH, if you want to run MPI programs",
			"the dynamic linker finds none")
	}
	for _, command := range []string{"mpirun", "srun"} {
		if kind := m.Launcher(command); kind != "" {
			s.add(OK, command, "", "%s: pinwheel run knows it", kind)
		}
	}
	return s
}

// fileOf returns where a transport's library is, "" if it is not here.
func (m *Machine) fileOf(t transport) string {
	for _, soname := range t.sonames {
		if file := m.object(soname); file != "" {
			return file
		}
	}
	return ""
}

func (m *Machine) versionOf(t transport) string {
	if t.command == nil {
		return ""
	}
	match := t.version.FindStringSubmatch(m.Output(t.command...))
	if match == nil {
		return ""
	}
	return strings.Join(match[1:], "")
}
