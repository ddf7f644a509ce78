package doctor

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"pinwheel/internal/caches"
	"pinwheel/internal/tools/launch"
)

// compatibilityPage says more of each row, under a heading of the row's name.
const compatibilityPage = "docs/compatibility.md"

// row is a part of the page, and how to tell that it applies to this machine.
type row struct {
	heading string
	applies func(*Machine) (why string) // what of the machine it is about, "" if it does not apply
	says    string
}

var rows = []row{
	{"Open MPI over UCX", together("Open MPI", "UCX"), "tried with Open MPI 4.1.4 and UCX 1.13.1"},
	{"Open MPI over libfabric", together("Open MPI", "libfabric"), "tried with Open MPI 4.1.4 and libfabric 1.17.0"},
	{"MPICH over UCX", together("MPICH", "UCX"), "tried with MPICH 4.0.2 and UCX 1.13.1"},
	{"MPI-5 ABI", (*Machine).standardABI, "see which libraries are known"},
	{"mlx5", driver("mlx5_core"), "not tried on an adapter: see what is known of RC, DC and relaxed ordering"},
	{"EFA", driver("efa"), "not tried on an adapter: its provider has a cache of its own"},
	{"PSM3 and OPX", driver("hfi1"), "they register memory without verbs, which Pinwheel does not see"},
	{"CXI", (*Machine).cxi, "it registers memory without verbs, which Pinwheel does not see"},
	{"GPUs", (*Machine).accelerator, "not tried with memory of the device"},
	{"Allocators", preloaded("jemalloc", "tcmalloc", "mimalloc"), "tried: jemalloc, tcmalloc and mimalloc"},
	{"Sanitizers and valgrind", preloaded("libasan", "libtsan", "libubsan"), "a sanitizer must come first in LD_PRELOAD"},
}

// compatibility names the rows that apply.
func (m *Machine) compatibility() section {
	s := section{name: "Compatibility (" + compatibilityPage + ")"}
	var apply []string
	for _, r := range rows {
		if why := r.applies(m); why != "" {
			apply = append(apply, fmt.Sprintf("%s: here %s; %s", r.heading, why, r.says))
		}
	}
	if len(apply) == 0 {
		apply = []string{"none is about what was found here"}
	}
	s.add(OK, "rows", "", "%s", strings.Join(apply, "\n"))
	return s
}

// together applies where all these transports are found.
func together(names ...string) func(*Machine) string {
	return func(m *Machine) string {
		var found []string
		for _, t := range transports {
			if slices.Contains(names, t.name) && m.fileOf(t) != "" {
				found = append(found, strings.TrimSpace(t.name+" "+m.versionOf(t)))
			}
		}
		if len(found) < len(names) {
			return ""
		}
		slices.Reverse(found) // the MPI library first
		return strings.Join(found, " and ")
	}
}

// driver applies where an RDMA device has this driver.
func driver(name string) func(*Machine) string {
	return func(m *Machine) string {
		const devices = "sys/class/infiniband"
		entries, _ := fs.ReadDir(m.Root, devices) // missing where there is no device
		for _, e := range entries {
			target, err := fs.ReadLink(m.Root, path.Join(devices, e.Name(), "device/driver"))
			if err == nil && path.Base(target) == name {
				return e.Name()
			}
		}
		return ""
	}
}

// preloaded applies where LD_PRELOAD has one of these libraries.
func preloaded(names ...string) func(*Machine) string {
	return func(m *Machine) string {
		for _, library := range launch.SplitPreload(m.getenv("LD_PRELOAD")) {
			for _, name := range names {
				if strings.Contains(path.Base(library), name) {
					return path.Base(library)
				}
			}
		}
		return ""
	}
}

func (m *Machine) standardABI() string {
	const soname = "libmpi_abi.so.0"
	if m.object(soname) == "" {
		return ""
	}
	return soname
}

func (m *Machine) cxi() string {
	entries, _ := fs.ReadDir(m.Root, "sys/class/cxi") // missing where there is no device
	if len(entries) == 0 {
		return ""
	}
	return entries[0].Name()
}

func (m *Machine) accelerator() string {
	for _, file := range caches.Accelerators {
		if m.exists(file) {
			return file
		}
	}
	return ""
}
