package stack

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Stack is an MPI library and the transport below it.
type Stack struct {
	Name string // such as "openmpi-ucx"
	// MPI is the suffix by which Debian tells the commands of one MPI library from those of another: "openmpi", "mpich".
	MPI string

	settings []string // variables of every job
	shared   []string // variables that have shared memory carry the data instead
	needs    []string // libraries that the device must have
	plugin   string   // pattern of the file that joins MPI library and transport to verbs
	packages string   // those of Debian that it needs
}

var openMPI = []string{
	"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
	"OMPI_MCA_mpi_yield_when_idle=1", "OMPI_MCA_rmaps_base_oversubscribe=1", "OMPI_MCA_hwloc_base_binding_policy=none",
	"OMPI_MCA_btl=^openib,vader,tcp,uct,ofi", // these would carry data as well
}

// ucx leaves UCX no transport but the device; "self" is for messages of a rank to itself.
var ucx = []string{"UCX_TLS=rc_verbs,ud_verbs,self", "UCX_NET_DEVICES=sv0:1"}

// All are the stacks, in the order of their tables.
var All = []Stack{
	{
		Name: "openmpi-ucx", MPI: "openmpi",
		settings: slices.Concat(openMPI, ucx, []string{
			"OMPI_MCA_pml=ucx", "OMPI_MCA_osc=ucx",
			// Without these it takes UCX for devices that it knows only.
			"OMPI_MCA_opal_common_ucx_tls=any", "OMPI_MCA_opal_common_ucx_devices=any",
		}),
		shared: []string{"UCX_TLS=sm,self"},
		needs:  []string{verbsLibrary},
		plugin: "/usr/lib/*/ucx/libuct_ib.so.0", packages: "openmpi-bin libopenmpi-dev libucx0",
	},
	{
		Name: "mpich-ucx", MPI: "mpich",
		settings: slices.Concat(ucx, []string{
			"MPIR_CVAR_POLLS_BEFORE_YIELD=5",
			// Before 4.2, a receive into a type with gaps fails ("Message truncated") where a fragment of UCX ends within
			// an element, as those of 8192 bytes do: https://github.com/pmodels/mpich/pull/6796.
			"UCX_RC_VERBS_SEG_SIZE=8193",
		}),
		shared: []string{"UCX_TLS=sm,self"},
		needs:  []string{verbsLibrary},
		plugin: "/usr/lib/*/ucx/libuct_ib.so.0", packages: "mpich libmpich-dev libucx0",
	},
	{
		Name: "openmpi-libfabric", MPI: "openmpi",
		settings: slices.Concat(openMPI, []string{
			"OMPI_MCA_pml=cm", "OMPI_MCA_mtl=ofi", "OMPI_MCA_mtl_ofi_provider_include=verbs;ofi_rxm", "OMPI_MCA_osc=pt2pt",
		}),
		shared: []string{"OMPI_MCA_pml=ob1", "OMPI_MCA_btl=self,vader"},
		needs:  []string{verbsLibrary, "librdmacm.so.1"},
		plugin: "/usr/lib/*/openmpi/lib/openmpi3/mca_mtl_ofi.so", packages: "openmpi-bin libopenmpi-dev libfabric1",
	},
}

// Named returns the stack with this name.
func Named(name string) (Stack, error) {
	for _, s := range All {
		if s.Name == name {
			return s, nil
		}
	}
	var names []string
	for _, s := range All {
		names = append(names, s.Name)
	}
	return Stack{}, fmt.Errorf("no stack is called %q; there are %s", name, strings.Join(names, ", "))
}

// Missing says in one line why the stack can't run on the device, "" if it can.
func (s Stack) Missing(d Device) string {
	for _, library := range s.needs {
		if _, err := os.Stat(filepath.Join(d.libraries(), library)); err != nil {
			return fmt.Sprintf("%s has no %s", d.libraries(), library)
		}
	}
	found, _ := filepath.Glob(s.plugin) // the pattern is good
	for _, command := range []string{s.launcher(), "mpicc." + s.MPI} {
		if _, err := exec.LookPath(command); err != nil {
			found = nil
		}
	}
	if len(found) == 0 {
		return fmt.Sprintf("%s is not installed (apt-get install %s)", s.Name, s.packages)
	}
	return ""
}

// Alone are the variables under which a process that no launcher has started
// has the device, and is a rank of its own on this stack.
func (s Stack) Alone(d Device) []string { return slices.Concat(s.settings, d.variables()) }

// OverSharedMemory are variables for Job.Environ under which the data goes
// through shared memory instead of the device, for tests of checks.
func (s Stack) OverSharedMemory() []string { return slices.Clone(s.shared) }

// launcher is the command that starts ranks.
func (s Stack) launcher() string { return "mpirun." + s.MPI }

// given returns the launcher's options that give variables to the ranks alone.
func (s Stack) given(vars []string) (options []string) {
	for _, v := range vars {
		if s.MPI == "openmpi" {
			options = append(options, "-x", v)
		} else {
			name, value, _ := strings.Cut(v, "=")
			options = append(options, "-genv", name, value)
		}
	}
	return options
}
