// Package caches knows the registration caches of transports: the variables that turn them
// off, and how to tell from a library whose cache it has. Such a cache hides uses from
// Pinwheel and keeps memory pinned.
package caches

import (
	"path/filepath"
	"regexp"
	"strings"
)

// Switch is a variable that turns off a transport's registration cache.
type Switch struct {
	Name, Value string
	Whose       string // for people; "" if the variable keeps nothing by itself
}

const (
	ucx       = "UCX"
	libfabric = "libfabric"
	openMPI   = "Open MPI"
	mvapich   = "MVAPICH2"
)

// Switches are harmless where the transport isn't used. UCX_MEMTYPE_CACHE is about kinds of
// memory, not about registrations, and is left alone.
var Switches = []Switch{
	// fi_mr(3). FI_MR_CACHE_MAX_SIZE=0 does not turn it off.
	{"FI_MR_CACHE_MAX_COUNT", "0", libfabric},
	// fi_efa(7): that provider sets the former itself, and takes 0 for its default. With 1, an idle registration is
	// dropped before the next one is looked up. FI_EFA_MR_CACHE_ENABLE=0 would have it copy all messages (efa_mr.c).
	{"FI_EFA_MR_MAX_CACHED_COUNT", "1", libfabric},
	// The cache of UCP (ucp_context.c), and that of the InfiniBand transport,
	// which only older versions have (ib_md.c).
	{"UCX_RCACHE_ENABLE", "n", ucx},
	{"UCX_IB_REG_METHODS", "direct", ucx},
	// Versions that lack one of the two would warn at every rank.
	{"UCX_WARN_UNUSED_ENV_VARS", "n", ""},
	// ompi_info --all: "leave pinned" protocol. Its synonym opal_leave_pinned is
	// reported as deprecated.
	{"OMPI_MCA_mpi_leave_pinned", "0", openMPI},
	// MVAPICH2 user guide, section 11: registration cache.
	{"MV2_USE_LAZY_MEM_UNREGISTER", "0", mvapich},
}

// Drivers are of libfabric's providers that register memory without libibverbs: fi_psm3(7), fi_opx(7), fi_cxi(7).
// Pinwheel sees none of that, so such a provider needs libfabric's cache.
var Drivers = []struct{ Provider, Device string }{{"PSM3", "/dev/rv"}, {"OPX", "/dev/hfi1_0"}, {"CXI", "/dev/cxi0"}}

// IsOfLibfabric reports whether the switch turns off libfabric's cache.
func (s Switch) IsOfLibfabric() bool { return s.Whose == libfabric }

// Accelerators are files that the drivers of NVIDIA, AMD and Intel make.
var Accelerators = []string{"/dev/nvidiactl", "/dev/kfd", "/dev/dri/renderD128"}

// UCXVersion finds the version in what "ucx_info -v" prints, in the first group or the second. Newer ones say "Library
// version".
var UCXVersion = regexp.MustCompile(`(?im)^# (?:library )?version:? (\S+)|UCT version=(\S+)`)

// libraries begin the names of the files that call libibverbs.
var libraries = []struct{ prefix, whose string }{
	{"libuc", ucx}, // libuct_ib.so, libucp.so, libucs.so
	{"libfabric", libfabric},
	{"mca_", openMPI}, // mca_btl_openib.so
}

// WhoseIs returns whose cache is behind a library that registers memory, for people: the name
// of the file, if it is not known here.
func WhoseIs(library string) string {
	if library == "" {
		return "the transport"
	}
	base := filepath.Base(library)
	for _, l := range libraries {
		if strings.HasPrefix(base, l.prefix) {
			return l.whose
		}
	}
	return base
}

// Given returns those entries of an environment that are Switches of a transport.
func Given(environ []string) (list []string) {
	for _, s := range Switches {
		for _, entry := range environ {
			if s.Whose != "" && strings.HasPrefix(entry, s.Name+"=") {
				list = append(list, entry)
			}
		}
	}
	return list
}

// Of returns the entries of such a list that are about one transport, and the others that would
// turn its cache off.
func Of(whose string, given []string) (set, missing []string) {
	for _, s := range Switches {
		if s.Whose != whose {
			continue
		}
		right := false
		for _, entry := range given {
			if strings.HasPrefix(entry, s.Name+"=") {
				set = append(set, entry)
				right = entry == s.Name+"="+s.Value
			}
		}
		if !right {
			missing = append(missing, s.Name+"="+s.Value)
		}
	}
	return set, missing
}
