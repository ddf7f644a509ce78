package pinwheel

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// runWithProfile uses a buffer a few times and returns what the report says about the profile.
func runWithProfile(t *testing.T, dir string, window int) (profile string, warned []string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "report.json")
	useFiveTimes(t, Options{Report: file, ProfileDir: dir, Window: window, Warn: func(s string) { warned = append(warned, s) }})
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

func TestProfileThatCannotBeKeptIsAWarning(t *testing.T) {
	profile, warned := runWithProfile(t, filepath.Join("/proc/self/status", "x"), 2)
	if profile != "refused" && profile != "none" || len(warned) == 0 || !strings.Contains(warned[len(warned)-1], "is not kept") {
		t.Errorf("profile %q, warned %q", profile, warned)
	}
}

// A site that differs between runs would make profiles useless.
func TestSiteOfANameIsTheSameInEveryRun(t *testing.T) {
	if got := NewSite("halo"); got != (Site{0xae339fcc7412253f}) || got == NewSite("hallo") {
		t.Errorf("%#x", got)
	}
}
