package launch

import "fmt"

// cacheSwitch is a variable that turns off a transport's own registration
// cache, which would hide uses from Pinwheel and keep memory pinned.
type cacheSwitch struct {
	name, value string
	whose       string // for people; "" if it keeps nothing by itself
}

// cacheSwitches are harmless where the transport isn't used. UCX_MEMTYPE_CACHE
// is about kinds of memory, not about registrations, and is left alone.
var cacheSwitches = []cacheSwitch{
	// fi_mr(3). FI_MR_CACHE_MAX_SIZE=0 does not turn it off.
	{"FI_MR_CACHE_MAX_COUNT", "0", "libfabric"},
	// The cache of UCP (ucp_context.c), and that of the InfiniBand transport,
	// which only older versions have (ib_md.c).
	{"UCX_RCACHE_ENABLE", "n", "UCX"},
	{"UCX_IB_REG_METHODS", "direct", "UCX"},
	// Versions that lack one of the two would warn at every rank.
	{"UCX_WARN_UNUSED_ENV_VARS", "n", ""},
	// ompi_info --all: "leave pinned" protocol. Its synonym opal_leave_pinned is
	// reported as deprecated.
	{"OMPI_MCA_mpi_leave_pinned", "0", "Open MPI"},
	// MVAPICH2 user guide, section 11: registration cache.
	{"MV2_USE_LAZY_MEM_UNREGISTER", "0", "MVAPICH2"},
}

// turnCachesOff returns the variables to set. One that is set already is left
// as it is; if it asks for something else there is a line about it.
func turnCachesOff(environ []string) (vars []variable, notes []string) {
	for _, c := range cacheSwitches {
		have, set := getenv(environ, c.name)
		switch {
		case !set:
			vars = append(vars, variable{c.name, c.value})
		case have != c.value && c.whose != "":
			notes = append(notes, fmt.Sprintf("%s=%s is kept: %s may keep registrations that Pinwheel does not see; unset it to have %s",
				c.name, have, c.whose, c.value))
		}
	}
	return vars, notes
}
