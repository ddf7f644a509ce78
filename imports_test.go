package pinwheel_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pinwheel"
	"pinwheel/internal/testwait"
)

// module is the path of this module: that of its root package.
var module = reflect.TypeFor[pinwheel.Options]().PkgPath()

// row is one row of the table of packages in ARCHITECTURE.md.
type row struct {
	number   int
	packages []string // relative to the module; "" is its root
}

// readRows returns the table of packages, top first.
func readRows(t *testing.T) (rows []row) {
	t.Helper()
	doc, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(doc), "\n## Packages\n")
	section, _, _ = strings.Cut(section, "\n## ")
	name := regexp.MustCompile("`([a-z/]+)`")
	for line := range strings.Lines(section) {
		cells := strings.Split(line, "|")
		if len(cells) < 3 || !strings.Contains(cells[1], "`") {
			continue
		}
		r := row{number: len(rows)}
		for _, m := range name.FindAllStringSubmatch(cells[1], -1) {
			r.packages = append(r.packages, strings.TrimPrefix(m[1], "pinwheel"))
		}
		rows = append(rows, r)
	}
	return rows
}

// rowOf returns the row that names a package, or a directory above it.
func rowOf(rows []row, pkg string) (number int, found bool) {
	for dir := pkg; ; dir = filepath.Dir(dir) {
		if dir == "." {
			return 0, false
		}
		for _, r := range rows {
			if slices.Contains(r.packages, dir) {
				return r.number, true
			}
		}
		if dir == "" {
			return 0, false
		}
	}
}

// importsOf returns the packages of this module that each of its packages
// imports, tests aside.
func importsOf(t *testing.T) map[string][]string {
	t.Helper()
	imports := map[string][]string{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() &&
			(d.Name() == "testdata" || d.Name() == "bin" || d.Name() == "out" || len(d.Name()) > 1 && d.Name()[0] == '.') {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		dir := strings.TrimSuffix(strings.TrimPrefix(filepath.Dir(path), "."), "/")
		if imports[dir] == nil {
			imports[dir] = []string{}
		}
		for _, i := range f.Imports {
			name, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return err
			}
			if rest, ours := strings.CutPrefix(name, module); ours && (rest == "" || rest[0] == '/') {
				imports[dir] = append(imports[dir], strings.TrimPrefix(rest, "/"))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return imports
}

func TestNoImportGoesUpTheTableOfTheArchitecture(t *testing.T) {
	rows := readRows(t)
	if len(rows) < 10 {
		t.Fatalf("the table of packages has %d rows", len(rows))
	}
	imports := importsOf(t)
	if len(imports) < 40 {
		t.Fatalf("only %d packages were found", len(imports))
	}
	for pkg, imported := range imports {
		at, found := rowOf(rows, pkg)
		if !found {
			t.Errorf("ARCHITECTURE.md names no row for %q", pkg)
			continue
		}
		for _, i := range imported {
			if above, found := rowOf(rows, i); found && above > at {
				t.Errorf("%q imports %q, which stands below it in ARCHITECTURE.md", pkg, i)
			}
		}
	}
}

func TestRowsOfTheArchitectureNamePackages(t *testing.T) {
	imports := importsOf(t)
	for _, r := range readRows(t) {
		for _, p := range r.packages {
			is := func(pkg string) bool { return pkg == p || strings.HasPrefix(pkg, p+"/") }
			if found := slices.ContainsFunc(slices.Collect(maps.Keys(imports)), is); !found {
				t.Errorf("ARCHITECTURE.md names %q, which has no package", p)
			}
		}
	}
}

// What the parts of the engine agree on lies in mem.
func TestPartsOfTheEngineDoNotKnowEachOther(t *testing.T) {
	parts := []string{"verbs", "queue", "predictor", "vmwatch", "trace"}
	part := func(pkg string) string { first, _, _ := strings.Cut(pkg, "/"); return first }
	for pkg, imported := range importsOf(t) {
		for _, i := range imported {
			if slices.Contains(parts, part(pkg)) && slices.Contains(parts, part(i)) && part(pkg) != part(i) {
				t.Errorf("%q imports %q", pkg, i)
			}
		}
	}
}

// There are three roofs: what serves MPI programs and transports, communication over it (comm), and the laboratory (lab).
// What ships knows no laboratory, and what registers memory knows no communication. Commands join them.
func TestRoofsStandOnEachOther(t *testing.T) {
	under := func(pkg string, roofs ...string) bool {
		return slices.ContainsFunc(roofs, func(r string) bool { return pkg == r || strings.HasPrefix(pkg, r+"/") })
	}
	for pkg, imported := range importsOf(t) {
		for _, i := range imported {
			if under(i, "lab") && !under(pkg, "lab", "cmd/nasreplay") {
				t.Errorf("%q imports %q, of the laboratory", pkg, i)
			}
			if under(i, "comm") && !under(pkg, "comm", "lab", "cmd", "internal/tools", "mpishim/vmmc") {
				t.Errorf("%q imports %q, of communication", pkg, i)
			}
		}
	}
}

// What decides reads no clock, starts nothing and asks no system. So its drivers can run it in any time, and those that
// have no helper thread need nothing of one.
func TestScheduleIsPure(t *testing.T) {
	list := func(args ...string) []string {
		out, err := testwait.Command(t, "go", append([]string{"list"}, args...)...).Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.Fields(string(out))
	}
	pure := []string{"cmp", "encoding/json", "errors", "fmt", "iter", "math", "math/bits", "slices", "sort",
		module + "/mem", module + "/predictor", module + "/verbs"}
	for _, i := range list("-f", `{{join .Imports "\n"}}`, "./schedule") {
		if !slices.Contains(pure, i) {
			t.Errorf("schedule imports %s", i)
		}
	}
	deps := list("-deps", "./comm/vmmc/internal/lease")
	if !slices.Contains(deps, module+"/schedule") {
		t.Fatalf("%d packages, and schedule is none of them", len(deps))
	}
	for _, not := range []string{"helper", "placement", "internal/node", "internal/cgroup", "internal/cpulist"} {
		if slices.Contains(deps, module+"/"+not) {
			t.Errorf("comm/vmmc/internal/lease links %s", not)
		}
	}
}

// Ranks have no server, and no terminal: what the commands need for these stays out of the libraries.
func TestLibrariesDoNotLinkWhatOnlyCommandsNeed(t *testing.T) {
	out, err := testwait.Command(t, "go", "list", "-deps", ".", "./mpishim/server").Output()
	if err != nil {
		t.Fatal(err)
	}
	deps := strings.Fields(string(out))
	if !slices.Contains(deps, module+"/internal/engine") {
		t.Fatalf("%d packages, and internal/engine is none of them", len(deps))
	}
	for _, d := range deps {
		for _, not := range []string{"net", "net/http", "charm.land", "github.com/charmbracelet", "github.com/prometheus",
			"github.com/alecthomas/kong"} {
			if d == not || strings.HasPrefix(d, not+"/") && not != "net" {
				t.Errorf("the libraries link %s", d)
			}
		}
	}
}

// The Go command builds a package anew if a file in its directory has changed, and sees no other header. So a header
// from elsewhere is a link there.
func TestHeadersOfGoPackagesLieBesideThem(t *testing.T) {
	out, err := testwait.Command(t, "go", "list", "-f", `{{if .CgoFiles}}{{.Dir}}{{"\t"}}{{.CgoCFLAGS}}{{end}}`, "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := regexp.MustCompile(`(?m)^[/ \t]*#include "[^"]*/.*`)
	headers := 0
	for line := range strings.Lines(string(out)) {
		dir, flags, _ := strings.Cut(line, "\t")
		if strings.Contains(flags, "-I") {
			t.Errorf("%s is compiled with %s", dir, flags)
		}
		files, _ := filepath.Glob(filepath.Join(dir, "*.[gch]*")) // the pattern is good
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			headers += strings.Count(string(text), `#include "`)
			for _, include := range elsewhere.FindAllString(string(text), -1) {
				t.Errorf("%s: %s", file, include)
			}
		}
	}
	if headers < 20 {
		t.Errorf("only %d headers were found", headers)
	}
}
