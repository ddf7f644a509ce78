package engine

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pinwheel/predictor"
	"pinwheel/profile"
)

func TestProfilesOfJobsOfOtherSizesAreTold(t *testing.T) {
	p := Profiles{Dir: t.TempDir()}
	t.Setenv("OMPI_COMM_WORLD_SIZE", "8")
	for said, want := range map[int]int{4: 4, 0: 8, -1: 8} {
		if got := p.Of(0, said, 1).Ranks; got != want {
			t.Errorf("a profile of %d ranks where MPI says %d and the launcher 8", got, said)
		}
	}
	for _, nonsense := range []string{"x", "-1"} {
		t.Setenv("OMPI_COMM_WORLD_SIZE", nonsense)
		if got := p.Of(0, 0, 1).Ranks; got != 0 {
			t.Errorf("%d ranks by %q", got, nonsense)
		}
	}
}

// The rank that finds a damaged profile is any, as a rank loads at its first large message.
func TestAnyRankTellsOfADamagedProfile(t *testing.T) {
	for _, rank := range []int{0, 5} {
		var warned []string
		e := New(func(s string) { warned = append(warned, s) }, nil)
		o := profileOf(t, t.TempDir(), rank)
		o.Node = profile.Node{Job: fmt.Sprintf("%s-%d-%d", t.Name(), os.Getpid(), rank), Ranks: 8}
		l := &learner{engine: e, opt: o}
		l.Observe(predictor.Use{Region: 1}) // there is none; finds the directory of the job
		if len(warned) > 0 {
			t.Fatal(warned)
		}
		save(t, l, rank)
		found, err := filepath.Glob(filepath.Join(o.Store.Dir, "*", "*"))
		if err != nil || len(found) != 1 {
			t.Fatal(found, err)
		}
		if err := os.Truncate(found[0], 40); err != nil {
			t.Fatal(err)
		}
		for range 2 { // two of its engines
			(&learner{engine: e, opt: o}).Observe(predictor.Use{Region: 1})
		}
		if len(warned) != 1 || !strings.Contains(warned[0], "no intact profile") {
			t.Errorf("rank %d: %q", rank, warned)
		}
	}
}

func profileOf(t *testing.T, dir string, rank int) ProfileOptions {
	t.Helper()
	return *Profiles{Dir: dir}.Of(rank, 8, 1)
}

// save keeps what a learner has learned, as SaveProfile does.
func save(t *testing.T, l *learner, rank int) {
	t.Helper()
	lessons := l.inner.Lessons()
	part, err := profile.NewPart(rank, &lessons)
	if err == nil {
		err = l.opt.Store.Save(l.key, []profile.Part{part})
	}
	l.ranks.Leave()
	if err != nil {
		t.Fatal(err)
	}
}
