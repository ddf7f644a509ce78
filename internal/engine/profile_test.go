package engine

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pinwheel/internal/testwait"
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
	testwait.NeedOwnMemory(t)
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

// What the user reads of a profile that the helper failed with is what became of it.
func TestWhatBecomesOfAProfileAfterAFaultIsTold(t *testing.T) {
	testwait.NeedOwnMemory(t)
	for name, c := range map[string]struct {
		moreRanks int  // of the run that fails
		replaced  bool // before it ends
		want      string
		left      int
	}{
		"its own":     {0, false, "is removed", 0},
		"replaced":    {0, true, "replaced it since", 1},
		"another job": {1, false, "PINWHEEL_PROFILE_FORCE", 1},
	} {
		t.Run(name, func(t *testing.T) {
			var warned []string
			e := New(func(s string) { warned = append(warned, s) }, nil)
			o := profileOf(t, t.TempDir(), 0)
			o.Node = profile.Node{Job: fmt.Sprintf("%s-%d", t.Name(), os.Getpid()), Ranks: 8}
			first := &learner{engine: e, opt: o}
			first.Observe(predictor.Use{Region: 1})
			save(t, first, 0)
			failing := o
			failing.Ranks, failing.Force = o.Ranks+c.moreRanks, c.moreRanks > 0
			l := &learner{engine: e, opt: failing}
			l.Observe(predictor.Use{Region: 1})
			defer l.ranks.Leave()
			if c.replaced {
				save(t, first, 0)
			}
			e.discard(l)
			if len(warned) != 1 || !strings.Contains(warned[0], c.want) {
				t.Errorf("%q, want one with %q", warned, c.want)
			}
			if files, _ := filepath.Glob(filepath.Join(o.Store.Dir, "*", "*")); len(files) != c.left {
				t.Errorf("left: %q", files)
			}
		})
	}
}

func profileOf(t *testing.T, dir string, rank int) ProfileOptions {
	t.Helper()
	return *Profiles{Dir: dir}.Of(rank, 8, 1)
}

// save keeps what a learner has learned, as SaveProfile does.
func save(t *testing.T, l *learner, rank int) {
	t.Helper()
	trained := l.inner.Trained()
	part, err := profile.NewPart(rank, &trained)
	if err == nil {
		err = l.opt.Store.Save(l.key, []profile.Part{part})
	}
	l.ranks.Leave()
	if err != nil {
		t.Fatal(err)
	}
}
