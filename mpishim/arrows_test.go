package mpishim

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// mayInclude says whose headers the files of a folder may include, beside those of
// other packages.
var mayInclude = map[string][]string{
	"core":    {"core"},
	"preload": {"core", "preload"},
	"api":     {"core", "api", "include"},
	"server":  {"core", "server"},
}

var include = regexp.MustCompile(`(?m)^#include [<"](\w+\.h)[>"]`)

// TestIncludesFollowTheFolders: core knows nothing of the two libraries that link it,
// and those know nothing of each other.
func TestIncludesFollowTheFolders(t *testing.T) {
	headers, err := filepath.Glob("*/*.h")
	if err != nil {
		t.Fatal(err)
	}
	folders := make(map[string]string) // of each header
	for _, h := range headers {
		if i, err := os.Lstat(h); err == nil && i.Mode().IsRegular() { // else it is a link, for the Go command
			folders[filepath.Base(h)] = filepath.Dir(h)
		}
	}
	for folder, may := range mayInclude {
		files, err := filepath.Glob(folder + "/*.[chg]*")
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", folder, len(files), err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range include.FindAllStringSubmatch(string(text), -1) {
				if from := folders[m[1]]; from != "" && !slices.Contains(may, from) {
					t.Errorf("%s includes %s/%s", file, from, m[1])
				}
			}
		}
	}
}

// TestFilesCallNoCircles: a C file uses functions and data of files that do not use
// its own, directly or through others.
func TestFilesCallNoCircles(t *testing.T) {
	t.Parallel()
	dir := theStage(t)
	sources, err := cSources("core", "preload", "api")
	if err != nil {
		t.Fatal(err)
	}
	defines, uses := make(map[string]string), make(map[string][]string)
	for _, source := range sources {
		table, err := exec.Command("nm", "-P", objectOf(dir, source)).Output()
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(table)) {
			name, kind := strings.Fields(line)[0], strings.Fields(line)[1]
			switch {
			case kind == "U":
				uses[source] = append(uses[source], name)
			case strings.ToUpper(kind) == kind:
				defines[name] = source
			}
		}
	}
	done := make(map[string]bool)
	var visit func(source string, path []string)
	visit = func(source string, path []string) {
		if i := slices.Index(path, source); i >= 0 {
			t.Errorf("a circle: %s", strings.Join(append(path[i:], source), " -> "))
			return
		}
		if done[source] {
			return
		}
		for _, name := range uses[source] {
			if other := defines[name]; other != "" && other != source {
				visit(other, append(path, source))
			}
		}
		done[source] = true
	}
	for _, source := range sources {
		visit(source, nil)
	}
}
