package pinwheel_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pinwheel/internal/testwait"
)

// sharesMemory tells whether a file starts goroutines, or has what they need to share memory.
func sharesMemory(f *ast.File) (shares bool) {
	for _, i := range f.Imports {
		switch name, _ := strconv.Unquote(i.Path.Value); name { // the parser has read it
		case "sync", "sync/atomic", "go.uber.org/atomic", "golang.org/x/sync/errgroup", "testing/synctest", "os/signal", "net/http":
			return true
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			shares = true
		case *ast.CallExpr:
			method, ok := n.Fun.(*ast.SelectorExpr)
			shares = shares || ok && slices.Contains([]string{"Go", "AfterFunc", "Parallel"}, method.Sel.Name)
		}
		return !shares
	})
	return shares
}

// make race finds its packages by their text. None may be missing.
func TestRaceDetectorRunsWhereMemoryIsShared(t *testing.T) {
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip(err)
	}
	// Those as well whose tests run programs.
	out, err := testwait.Command(t, "make", "-s", "--no-print-directory", "race-packages", "RACE_PROGRAMS=", "RACE=all").Output()
	if err != nil {
		t.Fatal(err)
	}
	raced := strings.Fields(string(out))
	if len(raced) < 40 {
		t.Fatalf("only %d packages: %q", len(raced), raced)
	}
	for _, dir := range tested(t) {
		files, _ := filepath.Glob(filepath.Join(dir, "*.go")) // the pattern is good
		for _, file := range files {
			f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			if sharesMemory(f) && !slices.Contains(raced, dir) {
				t.Errorf("%s shares memory, and make race leaves %s out", file, dir)
			}
		}
	}
}

// tested returns the folders of packages that have tests.
func tested(t *testing.T) (dirs []string) {
	t.Helper()
	root, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	out, err := testwait.Command(t, "go", "list", "-f", `{{if or .TestGoFiles .XTestGoFiles}}{{.Dir}}{{end}}`, "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	for dir := range strings.Lines(string(out)) {
		dir = strings.TrimSuffix(dir, "\n")
		if rest, below := strings.CutPrefix(dir, root+"/"); below {
			dirs = append(dirs, "./"+rest)
		} else {
			dirs = append(dirs, ".")
		}
	}
	return dirs
}
