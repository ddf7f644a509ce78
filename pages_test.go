package pinwheel_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"pinwheel/internal/testwait"
)

// The first screen has few targets, and all of them say what they do; the other list lacks none of them.
func TestMakeHelp(t *testing.T) {
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip(err)
	}
	list := func(target string) map[string]string {
		out, err := testwait.Command(t, "make", "-s", "--no-print-directory", target).Output()
		if err != nil {
			t.Fatal(err)
		}
		targets := map[string]string{}
		for line := range strings.Lines(string(out)) {
			if f := strings.Fields(strings.TrimPrefix(line, "make ")); len(f) > 1 && (strings.HasPrefix(line, "make ") || line[0] == ' ') {
				targets[f[0]] = strings.Join(f[1:], " ")
			}
			if len(line) > 130 {
				t.Errorf("a long line: %s", line)
			}
		}
		return targets
	}
	short, all := list("help"), list("help-all")
	if len(short) != 12 || len(all) < 80 {
		t.Errorf("%d targets in short, and %d in all", len(short), len(all))
	}
	for target, text := range short {
		if all[target] != text {
			t.Errorf("%s: %q, and %q in the list of all", target, text, all[target])
		}
	}
}

// The files that ARCHITECTURE.md names are there: each by the end of its path.
func TestFilesOfTheArchitectureExist(t *testing.T) {
	doc, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	err = filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && (name == "bin" || name == "out" || len(name) > 1 && name[0] == '.') {
			return fs.SkipDir
		}
		for end := path; end != ""; {
			there[end] = true
			_, end, _ = strings.Cut(end, "/")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile("`([a-z_/]+\\.(?:go|c|h))`").FindAllStringSubmatch(string(doc), -1)
	if len(names) < 20 {
		t.Fatalf("only %d files are named", len(names))
	}
	for _, n := range names {
		if !there[n[1]] {
			t.Errorf("ARCHITECTURE.md names %s, which is not there", n[1])
		}
	}
}
