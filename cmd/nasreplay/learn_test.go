package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const again = "../../results/traces-again/"

func TestProfileIsUsedForTheSameJobOnly(t *testing.T) {
	dir := t.TempDir()
	ft, is := filepath.Join(dir, "ft.profile"), filepath.Join(dir, "is.profile")
	for path, name := range map[string]string{ft: ftB4, is: isC4} {
		out, stderr, status := nasreplay(t, "learn", name, "-o", path)
		if status != 0 || stderr != "" || !strings.HasPrefix(out, path+": 4 ranks, ") {
			t.Fatalf("status %d: %s%s", status, out, stderr)
		}
	}
	compare := func(profile, trace string, args ...string) (stdout, stderr string) {
		t.Helper()
		stdout, stderr, status := nasreplay(t, append([]string{"compare", "--csv", "--policy", "pinwheel", "--profile", profile, trace}, args...)...)
		if status != 0 || !strings.Contains(stdout, "pinwheel") {
			t.Errorf("%s for %s: status %d: %s%s", profile, trace, status, stdout, stderr)
		}
		return stdout, stderr
	}
	plain, _, _ := nasreplay(t, "compare", "--csv", "--policy", "pinwheel", ftB4)
	if _, stderr := compare(ft, again+"ft.B.4.pwt"); stderr != "" {
		t.Errorf("the same job on another day: %s", stderr)
	}
	if out, stderr := compare(is, ftB4); out != plain {
		t.Errorf("another program's profile makes a difference:\n%s%s", out, plain)
	} else {
		oneLine(t, stderr, "is not used: it is of the program is.C.4")
	}
	// The second recording of IS is of another build, which calls from elsewhere.
	_, stderr := compare(is, again+"is.C.4.pwt")
	oneLine(t, stderr, "is not used: it is of another build of the program")
	if _, stderr := compare(is, again+"is.C.4.pwt", "--profile-force"); stderr != "" {
		t.Error(stderr)
	}
}

func TestRealModeTakesAProfile(t *testing.T) {
	lu, path := "lu.B.4.pwt", filepath.Join(t.TempDir(), "lu.profile")
	if _, stderr, status := nasreplay(t, "learn", again+lu, "-o", path); status != 0 {
		t.Fatal(stderr)
	}
	real := func(trace string) (stdout, stderr string) {
		t.Helper()
		stdout, stderr, status := nasreplay(t, "compare", "--mode", "real", "--provider", "sim", "--scale", "0.01", "--json",
			"--policy", "paper,pinwheel", "--profile", path, trace)
		if status != 0 {
			t.Fatalf("status %d: %s", status, stderr)
		}
		return stdout, stderr
	}
	out, stderr := real(traces + lu)
	if stderr != "" || strings.Count(out, `"profile":true`) != 1 || strings.Index(out, `"profile":true`) < strings.Index(out, `"pinwheel"`) {
		t.Errorf("%s%s", out, stderr)
	}
	out, stderr = real(traces + "cg.C.4.pwt")
	oneLine(t, stderr, "is not used: it is of the program lu.B.4")
	if strings.Contains(out, `"profile"`) {
		t.Error(out)
	}
}

func TestDamagedProfileIsOneLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.profile")
	if err := os.WriteFile(path, []byte("\x89PWL\r\n\x1a\n\x03\x00\x00\x00 and so on and so on"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, stderr, status := nasreplay(t, "compare", "--policy", "pinwheel", "--profile", path, isC4)
	if status != 1 {
		t.Errorf("status %d", status)
	}
	oneLine(t, stderr, path+": no intact profile")
	_, stderr, status = nasreplay(t, "compare", "--profile-force", isC4)
	if status != 2 {
		t.Errorf("status %d", status)
	}
	oneLine(t, stderr, "--profile-force is for --profile")
}
