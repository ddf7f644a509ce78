package mpishim

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"pinwheel/lab/replay"
	"pinwheel/trace"
	"pinwheel/trace/summary"
)

// mpiLibrary is an MPI library that may be installed here, by Debian's names.
type mpiLibrary struct {
	name           string
	compiler       string
	launch         []string            // the number of ranks comes last
	environ        []string            // for every job
	transports     map[string][]string // variables that choose one
	installedByApt string
}

var mpiLibraries = []mpiLibrary{
	{"Open MPI", "mpicc.openmpi", []string{"mpirun.openmpi", "--oversubscribe", "-np"},
		[]string{"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
			"OMPI_MCA_hwloc_base_binding_policy=none", "OMPI_MCA_mpi_yield_when_idle=1"}, map[string][]string{
			"shared memory": {"OMPI_MCA_pml=ob1", "OMPI_MCA_btl=self,vader,tcp", "OMPI_MCA_btl_tcp_if_include=lo"},
			"TCP":           {"OMPI_MCA_pml=ob1", "OMPI_MCA_btl=self,tcp", "OMPI_MCA_btl_tcp_if_include=lo"},
		}, "openmpi-bin libopenmpi-dev"},
	{"MPICH", "mpicc.mpich", []string{"mpiexec.hydra", "-n"},
		[]string{"MPIR_CVAR_POLLS_BEFORE_YIELD=5"}, map[string][]string{
			"shared memory": {"UCX_TLS=self,sm"},
			"TCP":           {"UCX_TLS=self,tcp"},
		}, "mpich libmpich-dev"},
}

// buildCommand makes bin/pinwheel, built once beside the libraries of the stage.
var buildCommand = sync.OnceValues(func() (string, error) {
	path := filepath.Join(staged, "pinwheel")
	out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", path, "../cmd/pinwheel").CombinedOutput()
	if err != nil {
		return string(out), err
	}
	return path, nil
})

// need skips where the library is not installed, and where jobs were not asked
// for: they take minutes.
func (m mpiLibrary) need(t *testing.T) {
	t.Helper()
	if os.Getenv("MPISHIM_TEST_JOBS") == "" {
		t.Skip("starts jobs of a real MPI library: make test-jobs")
	}
	for _, tool := range []string{m.compiler, m.launch[0]} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%v: %s is not installed (apt-get install %s)", err, m.name, m.installedByApt)
		}
	}
}

// compile makes a program of sources with the library's compiler, or skips. It
// is named after the first.
func (m mpiLibrary) compile(t *testing.T, sources ...string) string {
	t.Helper()
	m.need(t)
	path := filepath.Join(t.TempDir(), strings.TrimSuffix(filepath.Base(sources[0]), filepath.Ext(sources[0])))
	args := append([]string{"-O2", "-fno-omit-frame-pointer", "-w", "-o", path}, sources...)
	if out, err := exec.Command(m.compiler, args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// compileWithVerbs makes a program that has used the stand-in of libibverbs
// before MPI_Init: whatever it gives to MPI is noted.
func (m mpiLibrary) compileWithVerbs(t *testing.T, source string) string {
	t.Helper()
	m.need(t)
	dir := t.TempDir() // of the stage's libraries this one only
	library := filepath.Join(dir, "libibverbs.so.1")
	if err := os.Link(filepath.Join(theStage(t), "libibverbs.so.1"), library); err != nil {
		t.Fatal(err)
	}
	return m.compile(t, source, "testing/standin/uses_verbs.c", library, "-Wl,-rpath,"+dir)
}

// jobDeadline is for a job of seconds on a machine that does much else.
const jobDeadline = 3 * time.Minute

// job is one that has ended.
type job struct {
	dir            string // where it ran
	status         int    // of the launcher
	stdout, stderr string
}

// start runs a job, under "pinwheel" with these arguments if there are any, in
// a directory of its own.
func (m mpiLibrary) start(t *testing.T, ranks int, environ, pinwheel []string, command ...string) (j job) {
	t.Helper()
	args := append(append(slices.Clone(m.launch), strconv.Itoa(ranks)), command...)
	if len(pinwheel) > 0 {
		path, err := buildCommand()
		if err != nil {
			t.Fatalf("%v\n%s", err, path)
		}
		args = slices.Concat([]string{path}, pinwheel,
			[]string{"--library", filepath.Join(staged, "libpinwheel.so"), "--"}, args)
	}
	ctx, cancel := context.WithTimeout(t.Context(), jobDeadline)
	defer cancel()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // the launcher ends its ranks
	cmd.WaitDelay = 10 * time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	j.dir = t.TempDir()
	cmd.Dir, cmd.Env = j.dir, slices.Concat(os.Environ(), []string{"PINWHEEL_WATCH_WAIT=y"}, m.environ, environ)
	err := cmd.Run()
	j.stdout, j.stderr = stdout.String(), stderr.String()
	if err != nil && !errors.As(err, new(*exec.ExitError)) || ctx.Err() != nil {
		t.Fatalf("%q after %v: %v\n%s%s", args, jobDeadline, err, j.stdout, j.stderr)
	}
	j.status = cmd.ProcessState.ExitCode()
	return j
}

// run is start of a job of two ranks that must succeed.
func (m mpiLibrary) run(t *testing.T, environ, pinwheel []string, command ...string) (dir, said string) {
	t.Helper()
	j := m.start(t, 2, environ, pinwheel, command...)
	if j.status != 0 {
		t.Fatalf("status %d\n%s%s", j.status, j.stdout, j.stderr)
	}
	return j.dir, j.stdout + j.stderr
}

// Where nothing is to be registered the program runs as ever, and the report says why.
func TestOutsideOfVerbsTheProgramRunsUnchanged(t *testing.T) {
	theStage(t)
	for _, m := range mpiLibraries {
		t.Run(m.name, func(t *testing.T) {
			program := m.compile(t, "../lab/testbed/programs/halo.c")
			for transport, environ := range m.transports {
				_, said := m.run(t, environ, []string{"run", "--report"}, program)
				for _, want := range []string{"2 ranks, data right", "@ MPI      " + m.name, "2 of 2 ranks",
					"Nothing was registered", "the transport used no verbs"} {
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
			program := m.compile(t, "../lab/testbed/programs/halo.c")
			dir, said := m.run(t, m.transports["shared memory"], []string{"record", "-o", "."}, program, "5")
			// Five steps of four requests and one wait for each, an allreduce with two buffers, and the end.
			if !strings.Contains(said, "data right") || !strings.Contains(said, "calls of 2 ranks") {
				t.Errorf("%s", said)
			}
			ops, _ := replayed(t, filepath.Join(dir, "halo.pwt"))
			delete(ops, "unmap") // where the kernel tells of it
			if n := sum(maps.Values(ops)); n != 43 {
				t.Errorf("%d records of rank 0, want 43: %v", n, ops)
			}
			if traces, _ := filepath.Glob(filepath.Join(dir, "*.pwt")); len(traces) != 3 {
				t.Errorf("traces: %q", traces)
			}
		})
	}
}

func sum(values iter.Seq[int]) (n int) {
	for v := range values {
		n += v
	}
	return n
}

// replayed plays a recorded job's trace and returns how many records of each operation rank 0 has.
func replayed(t *testing.T, path string) (ops map[string]int, leftOut string) {
	t.Helper()
	f, err := trace.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := replay.Compare(t.Context(),
		replay.Options{Policies: []string{replay.LeavePinned, replay.Pinwheel}}, f); err != nil {
		t.Errorf("the trace can't be replayed: %v", err)
	}
	s, err := summary.Read(f, 0, summary.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ops = map[string]int{}
	for _, o := range s.Ops {
		ops[o.Op] = int(o.Records)
	}
	if leftOut, err = f.LeftOut(); err != nil {
		t.Fatal(err)
	}
	return ops, leftOut
}

var recorded = []string{"../lab/testbed/programs/recorded.c", "../lab/testbed/programs/recorded_comms.c",
	"../lab/testbed/programs/recorded_requests.c"}

// Each kind of thing that lab/testbed/programs/recorded.c does, with what rank 0 must have of it in the trace.
func TestWhatIsRecordedIsReplayed(t *testing.T) {
	theStage(t)
	for _, m := range mpiLibraries {
		t.Run(m.name, func(t *testing.T) {
			program := m.compile(t, recorded...)
			for _, c := range []struct {
				kind    string
				has     map[string]int
				leftOut string
			}{
				{"communicators", map[string]int{"barrier": 10, "allreduce": 22, "alltoallv": 2, "bcast": 1, "wait": 20}, ""},
				{"connected", map[string]int{"barrier": 1, "bcast": 1, "sendrecv": 2}, ""},
				{"persistent", map[string]int{"ssend": 3, "isend": 3, "irecv": 3, "recv": 3, "wait": 9, "send": 0}, ""},
				{"cancelled", map[string]int{"irecv": 1, "wait": 1, "sendrecv": 2}, ""},
				{"buffered", map[string]int{"bsend": 2, "ssend": 1, "recv": 3, "wait": 2}, ""},
				{"unblocked", map[string]int{"barrier": 1, "bcast": 1, "isend": 9, "free": 1}, ""},
				{"any", map[string]int{"isend": 5, "irecv": 3, "recv": 7, "probe": 2, "wait": 8}, ""},
				{"collectives",
					map[string]int{"gather": 3, "scatter": 3, "scan": 4, "reduce_scatter": 4, "alltoallv": 4, "neighbor": 4}, ""},
				{"onesided", map[string]int{"put": 3, "accumulate": 1, "get": 1, "wait": 5, "barrier": 3}, ""},
				{"failed", map[string]int{"send": 1}, ""},
				{"threads", map[string]int{"barrier": 1, "send": 0}, "2 calls of other threads"},
			} {
				if c.kind == "connected" && m.start(t, 2, m.transports["shared memory"], nil, program, c.kind).status != 0 {
					continue // Debian's MPICH can't
				}
				dir, said := m.run(t, m.transports["shared memory"], []string{"record", "-o", "."}, program, c.kind)
				if !strings.Contains(said, "done") {
					t.Errorf("%s: %s", c.kind, said)
				}
				has, leftOut := replayed(t, filepath.Join(dir, "recorded.pwt"))
				for op, n := range c.has {
					if has[op] != n {
						t.Errorf("%s: %d records of %s, want %d, of all %v", c.kind, has[op], op, n, has)
					}
				}
				if leftOut != c.leftOut {
					t.Errorf("%s: left out %q, want %q", c.kind, leftOut, c.leftOut)
				}
			}
		})
	}
}

// A program that unmaps, replaces, moves and discards the memory of its buffers, each in every step.
func TestTheEndsOfBuffersAreRecorded(t *testing.T) {
	theStage(t)
	for _, m := range mpiLibraries {
		t.Run(m.name, func(t *testing.T) {
			program := m.compile(t, "../lab/testbed/programs/renewed.c")
			const steps = 10
			dir, said := m.run(t, m.transports["shared memory"], []string{"record", "-o", "."}, program, strconv.Itoa(steps))
			f, err := trace.Open(filepath.Join(dir, "renewed.pwt"))
			if err != nil {
				t.Fatalf("%v\n%s", err, said)
			}
			defer f.Close()
			unseen, err := f.Unseen()
			if err != nil {
				t.Fatal(err)
			}
			for _, u := range unseen {
				if strings.HasPrefix(u.What, "ends of buffers") {
					t.Skip("not recorded: ", u.What)
				}
			}
			rs, err := replay.Compare(t.Context(), replay.Options{Policies: []string{replay.LeavePinned, replay.Pinwheel}}, f)
			if err != nil {
				t.Fatal(err)
			}
			// Two buffers that are mapped and unmapped, and one each that is replaced, discarded, moved away, and used meanwhile.
			const ends = 6 * steps
			if has, _ := replayed(t, filepath.Join(dir, "renewed.pwt")); has["unmap"] < ends || has["sendrecv"] != 2*9*steps {
				t.Errorf("%d ends of buffers, want %d at least: %v", has["unmap"], ends, has)
			}
			for _, r := range rs {
				if r.Rank == 0 && r.FirstRegs < ends {
					t.Errorf("%s: %d buffers of rank 0 were new in the replay, want %d at least", r.Policy, r.FirstRegs, ends)
				}
			}
		})
	}
}

// What there is of a job that did not get to MPI_Finalize can be replayed.
func TestJobsThatEndEarlyAreRecorded(t *testing.T) {
	theStage(t)
	for _, m := range mpiLibraries {
		t.Run(m.name, func(t *testing.T) {
			program := m.compile(t, recorded...)
			j := m.start(t, 2, m.transports["shared memory"], []string{"record", "-o", "."}, program, "aborted")
			if has, _ := replayed(t, filepath.Join(j.dir, "recorded.pwt")); has["sendrecv"] != 20 {
				t.Errorf("aborted, status %d: %v\n%s", j.status, has, j.stderr)
			}
			j = m.start(t, 1, m.transports["shared memory"], []string{"record", "-o", "."}, program, "unfinished")
			if has, _ := replayed(t, filepath.Join(j.dir, "recorded.pwt")); has["allreduce"] != 2 {
				t.Errorf("without MPI_Finalize, status %d: %v\n%s", j.status, has, j.stderr)
			}
		})
	}
}
