package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// program is one of lab/testbed/programs that verifies its data.
type program struct {
	name    string
	sources []string // "" is the one file with its name
	args    string
	says    string // in its output if all data was right; "" is "data right"
	small   bool   // its messages are below 64 KiB, or MPI copies them: it shows only that something went over the device
	ranks   []int  // it runs on; nil is any number
	mpi     string // it needs; "" is any
	environ []string
	module  bool // its source is also that of a library beside it, compiled with -DMODULE
	// pinwheelOnly: UCX's own cache sends old data. Its hooks get mremap to a place of the program's choice wrong
	// (package launch), and do not see what dlclose unmaps.
	pinwheelOnly bool
}

var programs = []program{
	{name: "alltoallv", args: "4 32768"},
	{name: "children"},
	{name: "collectives", args: "3 262144"},
	{name: "derived", small: true},
	{name: "exchange_f08"},
	{name: "fileio", args: "3 262144", small: true, environ: []string{"OMPI_MCA_io=romio321"}},
	{name: "fileio_ompio", sources: []string{"fileio.c"}, args: "3 262144", small: true, mpi: "openmpi",
		environ: []string{"OMPI_MCA_io=ompio"}},
	{name: "halo", args: "20"},
	{name: "hugepages"},
	{name: "inplace", small: true},
	{name: "jump", small: true},
	{name: "languages", sources: []string{"languages.f90", "languages_ends.c"}, says: "done",
		small: true, ranks: []int{2}},
	{name: "latency", args: "20", small: true},
	{name: "lifecycle"},
	{name: "matched", args: "3 262144"},
	{name: "neighbours", args: "3 262144"},
	{name: "onesided", args: "3 262144"},
	{name: "persistent"},
	{name: "pinned", args: "12 4194304 20"},
	{name: "places", says: "places: done", small: true},
	{name: "pool", mpi: "openmpi"}, // as mpi4py is in Debian
	{name: "remap", pinwheelOnly: true},
	{name: "renewed", pinwheelOnly: true},
	{name: "planned", args: "3 262144"},
	{name: "ring_f08"},
	{name: "sessions", mpi: "mpich", small: true},
	{name: "spawn", mpi: "openmpi", small: true, ranks: []int{2}}, // Debian's MPICH can't
	{name: "threads", args: "3 262144"},
	{name: "transpose"},
	{name: "urgent"},
	{name: "turns", args: "200 131072"},
	{name: "unloaded", module: true, pinwheelOnly: true},
	{name: "vectors"}, // with more in a message MPICH 4.0 fails by itself
	{name: "wavefront"},
}

// python is Debian's, which has mpi4py.
const python = "/usr/bin/python3"

var extensions = []string{".c", ".cc", ".f90", ".py"}

// verifyNothing are sources beside them of programs that print what they saw instead.
var verifyNothing = []string{"errors", "recorded", "recorded_comms", "recorded_requests", "unfinished"}

func programNamed(name string) (program, error) {
	for _, p := range programs {
		if p.name == name {
			return p, nil
		}
	}
	return program{}, fmt.Errorf("no program that verifies data is called %q", name)
}

// files returns the sources in their directory.
func (p program) files(dir string) []string {
	var files []string
	for _, source := range p.sources {
		files = append(files, filepath.Join(dir, source))
	}
	if len(files) == 0 {
		for _, extension := range extensions {
			found, _ := filepath.Glob(filepath.Join(dir, p.name+extension)) // the pattern is good
			files = append(files, found...)
		}
	}
	return files
}

func (p program) arguments() []string { return strings.Fields(p.args) }

// script returns the path of the program if Python runs it, "" if it is compiled.
func (p program) script(dir string) string {
	if files := p.files(dir); filepath.Ext(files[0]) == ".py" {
		return files[0]
	}
	return ""
}

// missing says in one line what a script lacks here, "" if it can run.
func (p program) missing(dir string) string {
	if p.script(dir) == "" || exec.Command(python, "-c", "import mpi4py").Run() == nil {
		return ""
	}
	return "Python has no mpi4py (apt-get install python3-mpi4py)"
}
