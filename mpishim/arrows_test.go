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
			for _, name := range included(t, file) {
				if from := folders[name]; from != "" && !slices.Contains(may, from) {
					t.Errorf("%s includes %s/%s", file, from, name)
				}
			}
		}
	}
}

// TestFilesCallNoCircles: a C file uses functions, data and headers of files that do not use
// its own, directly or through others. A header belongs to the C file of its name.
func TestFilesCallNoCircles(t *testing.T) {
	t.Parallel()
	dir := theStage(t)
	sources, err := cSources("core", "preload", "api")
	if err != nil {
		t.Fatal(err)
	}
	defines, uses := make(map[string]string), make(map[string][]string)
	for _, source := range sources {
		stem := strings.TrimSuffix(source, ".c")
		uses[stem] = append(uses[stem], included(t, source)...)
		table, err := exec.Command("nm", "-P", objectOf(dir, source)).Output()
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(table)) {
			name, kind := strings.Fields(line)[0], strings.Fields(line)[1]
			switch {
			case kind == "U":
				uses[stem] = append(uses[stem], name)
			case strings.ToUpper(kind) == kind:
				defines[name] = stem
			}
		}
	}
	for _, folder := range []string{"core", "preload", "api"} {
		headers, err := filepath.Glob(folder + "/*.h")
		if err != nil {
			t.Fatal(err)
		}
		for _, header := range headers {
			stem := strings.TrimSuffix(header, ".h")
			defines[filepath.Base(header)] = stem
			uses[stem] = append(uses[stem], included(t, header)...)
		}
	}
	done := make(map[string]bool)
	var visit func(stem string, path []string)
	visit = func(stem string, path []string) {
		if i := slices.Index(path, stem); i >= 0 {
			t.Errorf("a circle: %s", strings.Join(append(path[i:], stem), " -> "))
			return
		}
		if done[stem] {
			return
		}
		for _, name := range uses[stem] {
			if other := defines[name]; other != "" && other != stem {
				visit(other, append(path, stem))
			}
		}
		done[stem] = true
	}
	for stem := range uses {
		visit(stem, nil)
	}
}

// included returns the headers that a C file includes, by name.
func included(t *testing.T, file string) (names []string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range include.FindAllStringSubmatch(string(text), -1) {
		names = append(names, m[1])
	}
	return names
}
