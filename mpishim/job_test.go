package mpishim

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// mpiLibrary is an MPI library that may be installed here, by Debian's names.
type mpiLibrary struct {
	name           string
	compiler       string
	launch         []string
	transports     map[string][]string // variables that choose one
	runAsRootToo   []string
	installedByApt string
}

var mpiLibraries = []mpiLibrary{
	{"Open MPI", "mpicc.openmpi", []string{"mpirun.openmpi", "-np", "2", "--oversubscribe"}, map[string][]string{
		"shared memory": {"OMPI_MCA_pml=ob1", "OMPI_MCA_btl=self,vader"},
		"TCP":           {"OMPI_MCA_pml=ob1", "OMPI_MCA_btl=self,tcp", "OMPI_MCA_btl_tcp_if_include=lo"},
	}, []string{"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"}, "openmpi-bin libopenmpi-dev"},
	{"MPICH", "mpicc.mpich", []string{"mpiexec.hydra", "-n", "2"}, map[string][]string{
		"shared memory": {"UCX_TLS=self,sm"},
		"TCP":           {"UCX_TLS=self,tcp"},
	}, nil, "mpich libmpich-dev"},
}

// command is bin/pinwheel, built once beside the libraries of the stage.
var command = sync.OnceValues(func() (string, error) {
	path := filepath.Join(build().dir, "pinwheel")
	out, err := exec.Command("go", "build", "-o", path, "../cmd/pinwheel").CombinedOutput()
	if err != nil {
		return string(out), err
	}
	return path, nil
})

// compile makes a program of tests/ with the library's compiler, or skips.
func (m mpiLibrary) compile(t *testing.T, program string) string {
	t.Helper()
	for _, tool := range []string{m.compiler, m.launch[0]} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%v: %s is not installed (apt-get install %s)", err, m.name, m.installedByApt)
		}
	}
	path := filepath.Join(t.TempDir(), program)
	if out, err := exec.Command(m.compiler, "-O2", "-fno-omit-frame-pointer", "-w", "-o", path, filepath.Join("tests", program+".c")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// run starts a job of two ranks by "pinwheel", in a directory of its own.
func (m mpiLibrary) run(t *testing.T, environ, pinwheel []string, job ...string) (dir, said string) {
	t.Helper()
	path, err := command()
	if err != nil {
		t.Fatalf("%v\n%s", err, path)
	}
	dir = t.TempDir()
	args := append(append(pinwheel, "--library", filepath.Join(build().dir, "libpinwheel.so"), "--"), m.launch...)
	cmd := exec.Command(path, append(args, job...)...)
	cmd.Dir, cmd.Env = dir, append(append(os.Environ(), m.runAsRootToo...), environ...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return dir, string(out)
}

// Where nothing is to be registered the program runs as ever, and the report says why.
func TestOutsideOfVerbsTheProgramRunsUnchanged(t *testing.T) {
	theStage(t)
	for _, m := range mpiLibraries {
		t.Run(m.name, func(t *testing.T) {
			program := m.compile(t, "halo")
			for transport, environ := range m.transports {
				_, said := m.run(t, environ, []string{"run", "--report"}, program)
				for _, want := range []string{"2 ranks, data right", "@ MPI      " + m.name, "2 of 2 ranks", "Nothing was registered", "the transport used no verbs"} {
					if !strings.Contains(said, want) {
						t.Errorf("%s: no %q in\n%s", transport, want, said)
					}
				}
				if strings.Contains(said, "pinwheel:") {
					t.Errorf("%s: a warning in\n%s", transport, said)
				}
			}
		})
	}
}

// Handles are pointers in one library and numbers in the other.
func TestRealJobsAreRecorded(t *testing.T) {
	theStage(t)
	for _, m := range mpiLibraries {
		t.Run(m.name, func(t *testing.T) {
			program := m.compile(t, "halo")
			dir, said := m.run(t, m.transports["shared memory"], []string{"record", "-o", "."}, program, "5")
			// Five steps of four requests and one wait for each, an allreduce with two buffers, and the end: of two ranks.
			if !strings.Contains(said, "data right") || !strings.Contains(said, "recorded 86 calls of 2 ranks") {
				t.Errorf("%s", said)
			}
			if traces, _ := filepath.Glob(filepath.Join(dir, "*.pwt")); len(traces) != 3 {
				t.Errorf("traces: %q", traces)
			}
		})
	}
}
