package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pinwheel/lab/testbed/live/stack"
)

const sources = "../programs"

func TestEveryProgramIsInTheTable(t *testing.T) {
	used := map[string]bool{}
	for _, p := range programs {
		files := p.files(sources)
		if len(files) == 0 {
			t.Errorf("%s has no source", p.name)
		}
		for _, path := range files {
			used[filepath.Base(path)] = true
		}
	}
	entries, err := os.ReadDir(sources)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		name, ext := e.Name(), filepath.Ext(e.Name())
		known := used[name] || slices.Contains(verifyNothing, strings.TrimSuffix(name, ext))
		if slices.Contains(extensions, ext) && !known {
			t.Errorf("%s is not in the table of programs", name)
		}
	}
}

func TestPairwiseHasEveryPairAndFewRuns(t *testing.T) {
	all := product(programs, policies, stack.All, []int{2, 4}, conditions[:1])
	chosen := pairwise(all)
	pairs := map[[2]string]bool{}
	for _, c := range chosen {
		for _, p := range c.pairs() {
			pairs[p] = true
		}
	}
	for _, c := range all {
		for _, p := range c.pairs() {
			if !pairs[p] {
				t.Fatalf("no run has %q", p)
			}
		}
	}
	if least := len(programs)*len(policies) - 1; len(chosen) > least+least/10 {
		t.Errorf("%d runs for the pairs of %d programs and %d policies", len(chosen), len(programs), len(policies))
	}
	seen := map[string]bool{}
	for _, c := range all {
		if seen[c.String()] {
			t.Errorf("two combinations are called %s", c)
		}
		seen[c.String()] = true
	}
}

func TestRunsAreJudged(t *testing.T) {
	halo, _ := programNamed("halo")
	jump, _ := programNamed("jump")
	moved := []stack.Use{{Regions: 3, Requests: 9, Large: 2}, {Regions: 3, Requests: 9, Large: 2}}
	little := []stack.Use{{Regions: 3, Requests: 9}, {Regions: 3, Requests: 9}}
	for _, c := range []struct {
		program program
		res     stack.Result
		want    string
	}{
		{halo, stack.Result{Output: "halo: 2 ranks, data right", Uses: moved}, ""},
		{jump, stack.Result{Output: "jump: 2 ranks, data right", Uses: little}, ""},
		{halo, stack.Result{Output: "halo: 2 ranks, data right", Uses: little}, "0 of 2 ranks moved large"},
		{halo, stack.Result{Output: "halo: 2 ranks, data right", Uses: moved[:1]}, "1 of 2 ranks moved large"},
		{jump, stack.Result{Output: "jump: 2 ranks, data right"}, "0 of 2 ranks moved anything"},
		{halo, stack.Result{Output: "halo: 2 ranks, DATA WRONG", Uses: moved}, `does not say "data right"`},
		{halo, stack.Result{Output: "halo: 2 ranks, data right", Uses: moved, Status: 139}, "status 139"},
		{halo, stack.Result{Output: "halo: 2 ranks, data right", Uses: moved, Status: 137, Late: true}, "not over"},
		{halo, stack.Result{Output: "pinwheel: why; running without Pinwheel\ndata right", Uses: moved},
			"ran without Pinwheel"},
	} {
		got := combination{program: c.program, policy: "pinwheel", ranks: 2}.judge(c.res)
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%+v: %q, want %q", c.res, got, c.want)
		}
	}
}

// A process whose parent has ended is found, and a file that nobody has open; both are gone after that.
func TestWhatAJobLeavesIsFound(t *testing.T) {
	if err := adoptOrphans(); err != nil {
		t.Fatal(err)
	}
	before := settle
	settle = time.Second // this job leaves what does not end
	t.Cleanup(func() { settle = before })
	had := lookBefore()
	f, err := os.CreateTemp(sharedMemory, "live-test-") // others may run this test at the same time
	if err != nil {
		t.Skip(err)
	}
	kept, name := f.Name(), f.Name()+"-left"
	defer os.Remove(kept)
	defer f.Close()
	if err := exec.Command("sh", "-c", "sleep 60 & touch "+name).Run(); err != nil {
		t.Fatal(err)
	}
	ours := func(left string) bool { return strings.HasSuffix(left, " sleep 60") || strings.HasPrefix(left, kept) }
	left := slices.DeleteFunc(had.left(), func(l string) bool { return !ours(l) })
	if len(left) != 2 || !strings.HasSuffix(left[0], " sleep 60") || left[1] != name {
		t.Errorf("%q", left)
	}
	if left := had.left(); slices.ContainsFunc(left, ours) {
		t.Errorf("again: %q", left)
	}
}

func TestStateGoesOnWhereItWas(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dir", "state.jsonl")
	s, err := openState(path, "build 1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := openState(path, "build 1"); err == nil {
		t.Error("two commands at once share a state file")
	}
	for _, o := range []outcome{{Run: "a"}, {Run: "b", Failed: "status 1"}, {Run: "c", Failed: "status 1"}, {Run: "c"}} {
		if err := s.add(o); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(`{"run":"tor`); err != nil { // killed here
		t.Fatal(err)
	}
	s.Close()
	for range 2 {
		if s, err = openState(path, "build 1"); err != nil {
			t.Fatal(err)
		}
		for run, want := range map[string]bool{"a": true, "b": false, "c": true, "d": false} {
			if s.passed(run) != want {
				t.Errorf("%s passed: %v", run, !want)
			}
		}
		s.Close()
	}
	if s, err = openState(path, "build 2"); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if s.passed("a") {
		t.Error("what another build passed counts")
	}
}

// The same number is the same launch, and one in ten kills.
func TestLaunchesAreMadeOfTheirNumbers(t *testing.T) {
	var c soakCmd
	kills, seen := 0, map[string]bool{}
	for n := range 1000 {
		l := c.launch(stack.All[0], n)
		if again := c.launch(stack.All[0], n); l.String() != again.String() || l.rank != again.rank {
			t.Fatalf("%s", l)
		}
		if l.way == lostRank {
			kills++
		}
		seen[l.way] = true
	}
	if kills != 100 || len(seen) != len(ways)+1 {
		t.Errorf("%d of 1000 kill; ways %v", kills, seen)
	}
}

func TestEndsAreCompared(t *testing.T) {
	plain := outcome{}
	for _, e := range []ended{
		{Result: stack.Result{Status: 137}, after: 1e9},
		{Result: stack.Result{Status: 9}, left: []string{kindOf("/dev/shm/mpich_shar_tmpab12CD")}},
	} {
		if !plain.see(e) || plain.see(e) {
			t.Errorf("%+v is news once", e)
		}
	}
	hung := ended{Result: stack.Result{Late: true, Output: "PMIX ERROR: UNREACHABLE in file"}, after: 60e9}
	if plain.see(hung) {
		t.Error("what comes of a launcher that hung is how jobs end")
	}
	if hung.after = 0; !(&outcome{}).see(hung) {
		t.Error("a launcher that hung where no rank was killed is overlooked")
	}
	mpich := launch{stack: stack.Stack{MPI: "mpich"}}
	for status, same := range map[int]bool{6: true, 6 | 9: true, 141: true, 9: false, 139: false} {
		if (&outcome{Statuses: []int{6}}).difference(mpich, ended{Result: stack.Result{Status: status}}) == "" != same {
			t.Errorf("a status of %d under MPICH: the same is not %v", status, same)
		}
	}
	if (&outcome{Statuses: []int{0}}).difference(mpich, ended{Result: stack.Result{Status: 9}}) == "" {
		t.Error("a rank that is killed where none fails is no difference")
	}
	left := ended{Result: stack.Result{Status: 9}, left: []string{kindOf("/dev/shm/mpich_shar_tmpxy99ZZ")}}
	for way, same := range map[string]bool{lostRank: true, "exit": false} {
		mpich.way = way
		if (&outcome{Statuses: []int{9}}).difference(mpich, left) == "" != same {
			t.Errorf("what MPICH's ranks share is left behind, %s: the same is not %v", way, same)
		}
	}
	for _, c := range []struct {
		e    ended
		want string
	}{
		{ended{Result: stack.Result{Status: 9}, after: 15e9}, ""},
		{ended{Result: stack.Result{Status: 137}, left: []string{kindOf("/dev/shm/mpich_shar_tmpxy99ZZ")}}, ""},
		{ended{missed: true}, ""},
		{ended{missed: true, Result: stack.Result{Status: 9}}, "no rank was there"},
		{ended{Result: stack.Result{Status: 139}}, "status 139, without Pinwheel one of [137 9]"},
		{ended{Result: stack.Result{Status: 9}, left: []string{"/dev/shm/pinwheel*"}}, "left behind /dev/shm/pinwheel*"},
		{ended{Result: stack.Result{Status: 9}, left: []string{kindOf("process 29637 sleep")}}, "left behind * sleep*, "},
		{ended{Result: stack.Result{Status: 9}, after: 60e9}, "went on for 60 s"},
	} {
		if got := plain.difference(launch{}, c.e); c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%+v: %q, want %q", c.e, got, c.want)
		}
	}
}
