package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"pinwheel/internal/report"
	"pinwheel/internal/testwait"
	"pinwheel/lab/testbed/live/stack"
)

// profiledJob is a program on two ranks that keeps a profile.
type profiledJob struct {
	t       *testing.T
	stack   stack.Stack
	device  stack.Device
	dir     string // of profiles
	scratch string
	runs    int
}

// eachStack runs a test on the stacks that this machine has.
func eachStack(t *testing.T, do func(t *testing.T, j *profiledJob)) {
	if os.Getenv("PINWHEEL_TEST_PROFILE") == "" {
		t.Skip("make test-profile")
	}
	d, err := stack.OpenDevice("../../../out/softverbs")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range stack.All {
		t.Run(s.Name, func(t *testing.T) {
			testwait.BoundAt(t, 5*time.Minute)
			if missing := s.Missing(d); missing != "" {
				t.Skip(missing)
			}
			scratch := t.TempDir()
			do(t, &profiledJob{t: t, stack: s, device: d, scratch: scratch, dir: filepath.Join(scratch, "profiles")})
		})
	}
}

// job returns a run of one of lab/testbed/programs, and where its ranks put their reports.
func (j *profiledJob) job(program string, args ...string) (job stack.Job, reports string) {
	j.t.Helper()
	out := filepath.Join(j.scratch, program)
	if err := j.stack.Compile(out, filepath.Join(sources, program+".c")); err != nil {
		j.t.Fatal(err)
	}
	command, err := filepath.Abs(pinwheel)
	if err != nil {
		j.t.Fatal(err)
	}
	j.runs++
	reports = filepath.Join(j.scratch, fmt.Sprintf("report%d.%%r.json", j.runs))
	return stack.Job{Stack: j.stack, Device: j.device, Ranks: ranks, Program: append([]string{out}, args...),
		// On a busy machine the program could end before anything is managed, and without a helper nothing is learned.
		Environ: []string{"PINWHEEL_WATCH_WAIT=y", "PINWHEEL_HELPER_CPU=0"},
		Under:   []string{command, "run", "--profile=" + j.dir, "--stats=" + reports}}, reports
}

// run runs a job to its end and returns its reports.
func (j *profiledJob) run(program string, args ...string) (all []report.Rank, output string) {
	j.t.Helper()
	job, reports := j.job(program, args...)
	res, err := job.Run(2 * time.Minute)
	if err != nil || res.Late {
		j.t.Fatalf("%v, late: %t: %s", err, res.Late, res.Output)
	}
	for rank := range ranks {
		text, err := os.ReadFile(strings.Replace(reports, "%r", fmt.Sprint(rank), 1))
		if err != nil {
			continue // it has not come to MPI_Finalize
		}
		var r report.Rank
		if err := json.Unmarshal(text, &r); err != nil {
			j.t.Fatal(err)
		}
		all = append(all, r)
	}
	return all, res.Output
}

// files returns what lies in the directory of profiles.
func (j *profiledJob) files() (names []string) {
	found, err := filepath.Glob(filepath.Join(j.dir, "*", "*"))
	if err != nil {
		j.t.Fatal(err)
	}
	for _, path := range found {
		names = append(names, filepath.Base(path))
	}
	return names
}

// expect checks what a run says about the profile, and what the files are after it.
func (j *profiledJob) expect(all []report.Rank, profile string, files ...string) {
	j.t.Helper()
	for _, r := range all {
		if r.Profile != profile {
			j.t.Errorf("rank %d: profile %q, want %q", r.Rank, r.Profile, profile)
		}
		j.t.Logf("rank %d: profile %s: %d hits, %d late, %d first, average %d KiB of %d KiB pinned",
			r.Rank, r.Profile, r.Hits, r.Late,
			r.First, r.AveragePinnedBytes>>10, r.PeakPinnedBytes>>10)
	}
	if got := j.files(); !slices.Equal(got, files) {
		j.t.Errorf("files %q, want %q", got, files)
	}
}

func pinwheelLines(output string) (lines []string) {
	for line := range strings.Lines(output) {
		if strings.HasPrefix(line, "pinwheel: ") {
			lines = append(lines, line)
		}
	}
	return lines
}

func TestSecondRunBeginsWithTheProfileOfTheFirst(t *testing.T) {
	eachStack(t, func(t *testing.T, j *profiledJob) {
		first, out := j.run("halo", "30")
		if len(first) != ranks || len(pinwheelLines(out)) > 0 {
			t.Fatalf("%d reports: %s", len(first), out)
		}
		j.expect(first, "none", "0-1.profile")
		second, out := j.run("halo", "30")
		if len(second) != ranks || len(pinwheelLines(out)) > 0 {
			t.Fatalf("%d reports: %s", len(second), out)
		}
		j.expect(second, "used", "0-1.profile")
		other, out := j.run("halo", "31")
		if lines := pinwheelLines(out); len(lines) != 1 || !strings.Contains(lines[0], `the arguments "30"`) {
			t.Errorf("another job: %q", lines)
		}
		j.expect(other, "refused", "0-1.profile", "0-1.profile")
	})
}

func TestDamagedProfileIsToldInOneLineAndReplaced(t *testing.T) {
	eachStack(t, func(t *testing.T, j *profiledJob) {
		j.run("halo", "10")
		found, err := filepath.Glob(filepath.Join(j.dir, "*", "*"))
		if err != nil || len(found) != 1 {
			t.Fatal(found, err)
		}
		if err := os.Truncate(found[0], 40); err != nil {
			t.Fatal(err)
		}
		all, out := j.run("halo", "10")
		if lines := pinwheelLines(out); len(lines) != 1 || !strings.Contains(lines[0], "no intact profile") {
			t.Errorf("%q", lines)
		}
		j.expect(all, "refused", "0-1.profile")
		all, _ = j.run("halo", "10")
		j.expect(all, "used", "0-1.profile")
	})
}

func TestProgramThatExitsIsKeptAndOneThatAbortsIsNot(t *testing.T) {
	eachStack(t, func(t *testing.T, j *profiledJob) {
		j.run("unfinished", "abort")
		if files := j.files(); len(files) > 0 {
			t.Errorf("after MPI_Abort: %q", files)
		}
		_, out := j.run("unfinished")
		var kept int // MPI may end the other rank before it is at its own exit
		for _, name := range j.files() {
			kept++
			if !strings.HasSuffix(name, ".profile") {
				t.Errorf("left: %s", name)
			}
		}
		if kept == 0 {
			t.Errorf("nothing is kept: %s", out)
		}
	})
}

func TestKilledRunsLeaveTheProfileAsItWas(t *testing.T) {
	eachStack(t, func(t *testing.T, j *profiledJob) {
		j.run("halo", "400")
		for range 3 {
			job, _ := j.job("halo", "400")
			r, err := job.Start()
			if err != nil {
				t.Fatal(err)
			}
			testwait.Until(t, "the ranks", func() bool { return len(r.Ranks()) == ranks }, func() any { return r.Ranks() })
			_ = syscall.Kill(r.Ranks()[1], syscall.SIGKILL) // a rank of this job
			// mpirun may never end after "PMIX ERROR: UNREACHABLE", if the rank had not come to it yet: it is killed, too.
			if res, err := r.Wait(time.Minute); err != nil || res.Status == 0 {
				t.Errorf("%v: %+v", err, res)
			}
		}
		all, _ := j.run("halo", "400")
		j.expect(all, "used", "0-1.profile")
	})
}

func TestJobsAtTheSameTimeShareTheDirectory(t *testing.T) {
	eachStack(t, func(t *testing.T, j *profiledJob) {
		var all sync.WaitGroup
		for _, args := range []string{"20", "20", "21"} {
			job, _ := j.job("halo", args)
			all.Go(func() {
				res, err := job.Run(2 * time.Minute)
				lines := slices.DeleteFunc(pinwheelLines(res.Output),
					func(l string) bool { return strings.Contains(l, "does not match") })
				if err != nil || res.Status != 0 || len(lines) > 0 {
					t.Errorf("%v: %+v", err, res)
				}
			})
		}
		all.Wait()
		for _, args := range []string{"20", "21"} {
			all, _ := j.run("halo", args)
			j.expect(all, "used", "0-1.profile", "0-1.profile")
		}
	})
}

// What can't be written is told in one line, and the program is as it would be without.
func TestProgramDoesNotSufferWhereNothingCanBeKept(t *testing.T) {
	eachStack(t, func(t *testing.T, j *profiledJob) {
		for what, dir := range map[string]string{"a file": "/etc/passwd", "a closed directory": "/proc/self/profiles"} {
			j.dir = dir
			job, _ := j.job("halo", "10")
			res, err := job.Run(2 * time.Minute)
			if lines := pinwheelLines(res.Output); err != nil || res.Status != 0 || len(lines) == 0 || len(lines) > 2 {
				t.Errorf("%s: %v: %+v", what, err, res)
			}
		}
	})
}
