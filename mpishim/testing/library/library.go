// Package library builds a C library that contains Go, and checks what holds for each of them: libpinwheel-NAME.so,
// whose functions pinwheel_NAME.h declares and which is built from mpishim/NAME. Its functions are for tests in there.
package library

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pinwheel/internal/testwait"
)

// Library is one of them.
type Library struct {
	Name string
	// Dir has the library and programs that are linked with it. Its name is short, for sockets.
	Dir string
}

// Main runs the tests of a package with a directory for l, and ends the process.
func (l *Library) Main(m *testing.M) {
	var err error
	if l.Dir, err = os.MkdirTemp("", "capi"); err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(l.Dir)
	os.Exit(code)
}

// Run runs a command and returns what it printed.
func Run(t *testing.T, name string, args ...string) string {
	t.Helper()
	c := testwait.Command(t, name, args...)
	c.Env = append(os.Environ(), "XDG_RUNTIME_DIR=") // the token of this user is no business of a test
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

func (l *Library) file() string { return l.Dir + "/libpinwheel-" + l.Name + ".so.0" }

func (l *Library) header() string { return "../include/pinwheel_" + l.Name + ".h" }

// Build builds the library once.
func (l *Library) Build(t *testing.T) {
	t.Helper()
	need(t, "cc", "a C compiler")
	if _, err := os.Stat(l.file()); err != nil {
		Run(t, "make", "-s", "-C", "../..", "SHIM_LIB="+l.Dir, l.file())
	}
}

// Compile builds a program in C against the library, without any warning.
func (l *Library) Compile(t *testing.T, source string, flags ...string) (program string) {
	t.Helper()
	l.Build(t)
	program = filepath.Join(l.Dir, strings.TrimSuffix(filepath.Base(source), ".c"))
	args := []string{"-O1", "-g", "-std=c11", "-D_DEFAULT_SOURCE", "-Wall", "-Wextra", "-pedantic", "-Werror",
		"-I../include", "-I../testing/library", "-o", program, source,
		"-Wl,--as-needed", "-L" + l.Dir, "-lpinwheel-" + l.Name, "-lpthread", "-Wl,-rpath," + l.Dir}
	Run(t, "cc", append(args, flags...)...)
	return program
}

// TestHeaderIsOneOfCxx compiles the header as C++.
func (l *Library) TestHeaderIsOneOfCxx(t *testing.T) {
	need(t, "c++", "a C++ compiler")
	Run(t, "c++", "-fsyntax-only", "-Wall", "-Wextra", "-pedantic", "-Werror", "-x", "c++", l.header())
}

// TestExportsTheHeader checks that programs see the functions of the header, and nothing else of the library.
func (l *Library) TestExportsTheHeader(t *testing.T) {
	need(t, "nm", "nm of binutils")
	l.Build(t)
	header, err := os.ReadFile(l.header())
	if err != nil {
		t.Fatal(err)
	}
	functions := 0
	for line := range strings.Lines(Run(t, "nm", "-D", "--defined-only", l.file())) {
		f := strings.Fields(line)
		name, _, _ := strings.Cut(f[len(f)-1], "@")
		if name == "PINWHEEL_"+strings.ToUpper(l.Name)+"_0" {
			continue
		}
		functions++
		if !strings.Contains(string(header), " "+name+"(") {
			t.Errorf("%s is no function of the header", name)
		}
	}
	want := 0
	for _, result := range []string{"int", "size_t"} {
		want += strings.Count(string(header), "\n"+result+" pinwheel_"+l.Name+"_")
	}
	if functions != want {
		t.Errorf("%d functions, and %d in the header", functions, want)
	}
}

// need skips a test without a tool.
func need(t *testing.T, tool, what string) {
	t.Helper()
	if _, err := exec.LookPath(tool); err != nil {
		t.Skipf("needs %s, %s", what, tool)
	}
}
