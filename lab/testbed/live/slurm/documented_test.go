package slurm_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pinwheel/internal/report"
	"pinwheel/internal/testwait"
	"pinwheel/lab/testbed/live/slurm"
	"pinwheel/lab/testbed/live/stack"
)

// documented returns the indented blocks of docs/slurm.md: scripts by the name in their second line, and the
// commands of the others.
func documented(t *testing.T) (scripts map[string]string, commands []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs/slurm.md"))
	if err != nil {
		t.Fatal(err)
	}
	scripts = map[string]string{}
	for _, block := range strings.Split(string(text), "\n\n") {
		if !strings.HasPrefix(block, "    ") {
			continue
		}
		block = strings.ReplaceAll(strings.TrimPrefix(block, "    "), "\n    ", "\n")
		lines := strings.Split(block, "\n")
		if name, found := strings.CutPrefix(lines[min(1, len(lines)-1)], "# "); found && strings.HasPrefix(block, "#!") {
			scripts[name] = block + "\n"
		} else {
			commands = append(commands, lines...)
		}
	}
	return scripts, commands
}

// The stacks of direct starts: libfabric differs from UCX in nothing that a launcher is concerned with.
var stacks = []string{"openmpi-ucx", "mpich-ucx"}

func eachStack(t *testing.T, test func(t *testing.T, s stack.Stack)) {
	for _, name := range stacks {
		s, err := stack.Named(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) { test(t, s) })
	}
}

// Every command of the documentation starts one job of four ranks, all under Pinwheel.
func TestDocumentedCommandsStartAllRanksUnderPinwheel(t *testing.T) {
	_, commands := documented(t)
	if len(commands) < 2 {
		t.Fatalf("docs/slurm.md has the commands %q", commands)
	}
	eachStack(t, func(t *testing.T, s stack.Stack) {
		for _, command := range commands {
			t.Run(command, func(t *testing.T) {
				b := newBench(t, s, halo)
				j := b.run(command, "SLURM_PARTITION="+slurm.Whole)
				if j.status != 0 {
					t.Errorf("status %d", j.status)
				}
				b.moved(4, j.output)
				if strings.Contains(command, "--report") {
					reported(t, j.output, 4)
				}
				if strings.Contains(command, "stats.%j.%r.json") {
					b.named("stats.%s.%d.json", 4)
				}
			})
		}
	})
}

// reported fails the test unless there is one report, of all ranks.
func reported(t *testing.T, output string, ranks int) {
	t.Helper()
	if strings.Count(output, "@ MPI ") != 1 || !strings.Contains(output, fmt.Sprintf("%d of %d ranks", ranks, ranks)) {
		t.Errorf("not one report of %d ranks in\n%s", ranks, output)
	}
}

// named fails the test unless each rank of the last job has written a report with the job's number and its own
// in the name, and no one else has.
func (b *bench) named(format string, ranks int) {
	b.t.Helper()
	id := lastJob(b.t)
	for rank := range ranks {
		name := fmt.Sprintf(format, id, rank)
		text, err := os.ReadFile(b.path(name))
		var r report.Rank
		if err == nil {
			err = json.Unmarshal(text, &r)
		}
		if err != nil || r.Rank != rank || r.Size != ranks || r.Uses == 0 {
			b.t.Errorf("%s: rank %d of %d, %d uses, %v", name, r.Rank, r.Size, r.Uses, err)
		}
	}
	pattern := strings.NewReplacer("%s", "*", "%d", "*").Replace(format)
	if found, _ := filepath.Glob(b.path(pattern)); len(found) != ranks {
		b.t.Errorf("reports: %q", found)
	}
}

// ended are states of squeue(1).
var ended = []string{"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL"}

// submit runs a batch script, which must end well, and returns the file of its output.
func (b *bench) submit(script string, environ ...string) string {
	b.t.Helper()
	if err := os.WriteFile(b.path("job.sh"), []byte(script), 0o755); err != nil {
		b.t.Fatal(err)
	}
	j := b.run("sbatch --parsable --partition="+slurm.Whole+" job.sh", environ...)
	id := strings.TrimSpace(j.output)
	state := func() string {
		time.Sleep(50 * time.Millisecond) // squeue takes the processors of the job
		return slurmSays(b.t, "squeue", "--noheader", "--states=all", "--jobs="+id, "--format=%T")
	}
	if j.status == 0 { // sbatch --wait looks once a minute
		over := func() bool { return slices.Contains(ended, state()) }
		testwait.Until(b.t, "the batch job ends", over, func() any { return state() })
	}
	if got := state(); got != "COMPLETED" {
		b.t.Errorf("sbatch: status %d, %s; the job is %s", j.status, j.output, got)
	}
	output, err := os.ReadFile(b.path("job.out"))
	if err != nil {
		b.t.Fatal(err)
	}
	return string(output)
}

func TestBatchScriptStartsItsStepUnderPinwheel(t *testing.T) {
	scripts, _ := documented(t)
	eachStack(t, func(t *testing.T, s stack.Stack) {
		b := newBench(t, s, halo)
		output := b.submit(scripts["job.sh"])
		b.moved(4, output)
		reported(t, output, 4)
	})
}

// The documented TaskProlog does what "pinwheel run" does, for a script that knows nothing of Pinwheel.
func TestTaskPrologPreloadsTheTasks(t *testing.T) {
	scripts, _ := documented(t)
	repository, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	prolog := strings.ReplaceAll(scripts["task-prolog"], "/opt/pinwheel", repository)
	unaware := strings.Replace(scripts["job.sh"], "pinwheel run --report -- ", "", 1)
	if prolog == "" || strings.Contains(unaware, "pinwheel") {
		t.Fatalf("docs/slurm.md has the scripts %q", scripts)
	}
	eachStack(t, func(t *testing.T, s stack.Stack) {
		b := newBench(t, s, halo)
		if err := cluster.SetTaskProlog(prolog); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := cluster.SetTaskProlog(""); err != nil {
				t.Error(err)
			}
		}()
		b.moved(4, b.submit(unaware, "PINWHEEL_STATS=stats.%j.%r.json"))
		b.named("stats.%s.%d.json", 4)
	})
}
