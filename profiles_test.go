package pinwheel

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"pinwheel/internal/testwait"
	"pinwheel/predictor"
)

// runWithProfile uses a buffer a few times and returns what the report says about the profile.
func runWithProfile(t *testing.T, dir string, window int) (profile string, warned []string) {
	t.Helper()
	return runOn(t, Options{ProfileDir: dir, Window: window})
}

func runOn(t *testing.T, o Options) (profile string, warned []string) {
	t.Helper()
	var mu sync.Mutex // the helper warns, too
	file := filepath.Join(t.TempDir(), "report.json")
	o.Report = file
	o.Warn = func(s string) { mu.Lock(); defer mu.Unlock(); warned = append(warned, s) }
	useFiveTimes(t, o)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var r struct{ Profile string }
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	return r.Profile, warned
}

func TestManagerBeginsWithTheProfileOfTheLastRun(t *testing.T) {
	testwait.NeedOwnMemory(t)
	dir := t.TempDir()
	for run, want := range []string{"none", "used", "used"} {
		if profile, warned := runWithProfile(t, dir, 2); profile != want || warned != nil {
			t.Errorf("run %d: profile %q, warned %q", run, profile, warned)
		}
	}
	profile, warned := runWithProfile(t, dir, 3)
	if profile != "refused" || len(warned) != 1 || !strings.Contains(warned[0], "context window of 2") {
		t.Errorf("another window: profile %q, warned %q", profile, warned)
	}
}

// misled stands for a predictor that fails with what its profile says.
type misled struct {
	predictor.Predictor
	uses int
}

func (p *misled) Observe(u predictor.Use) {
	p.Predictor.Observe(u)
	if p.uses++; p.uses == 5 {
		panic("trained fault, for a bad profile")
	}
}

func TestProfileThatTheHelperFailsWithIsDiscarded(t *testing.T) {
	testwait.NeedOwnMemory(t)
	dir := t.TempDir()
	if profile, warned := runWithProfile(t, dir, 2); profile != "none" || warned != nil {
		t.Fatalf("profile %q, warned %q", profile, warned)
	}
	o := Options{ProfileDir: dir, Window: 2,
		wrapPredictor: func(p predictor.Predictor) predictor.Predictor { return &misled{Predictor: p} }}
	profile, warned := runOn(t, o)
	if profile != "used" || len(warned) != 2 || !strings.Contains(warned[1], "is removed, as the helper failed with it") {
		t.Errorf("profile %q, warned %q", profile, warned)
	}
	if profile, warned := runWithProfile(t, dir, 2); profile != "none" || warned != nil {
		t.Errorf("afterwards: profile %q, warned %q", profile, warned)
	}
}

func TestProfileThatCannotBeKeptIsAWarning(t *testing.T) {
	testwait.NeedOwnMemory(t)
	profile, warned := runWithProfile(t, filepath.Join("/proc/self/status", "x"), 2)
	if profile != "refused" && profile != "none" || len(warned) == 0 ||
		!strings.Contains(warned[len(warned)-1], "is not kept") {
		t.Errorf("profile %q, warned %q", profile, warned)
	}
}

// A site that differs between runs would make profiles useless.
func TestSiteOfANameIsTheSameInEveryRun(t *testing.T) {
	if got := NewSite("halo"); got != (Site{0xae339fcc7412253f}) || got == NewSite("hallo") {
		t.Errorf("%#x", got)
	}
}
