package launchtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// Site is a directory with the stand-ins. Its bin, first in PATH, has the
// launchers and the programs app (Open MPI), checked (the same with AddressSanitizer, which
// is a stand-in, too), other (an unknown MPI), nompi, static, and script (of a shell).
type Site struct {
	Bin     string
	Library string // libpinwheel.so
	dir     string // where they write, FAKE_DIR
}

// built is made once for all tests of a process.
var built = sync.OnceValues(func() (dir string, err error) {
	if dir, err = os.MkdirTemp("", "launchtest"); err != nil {
		return "", err
	}
	return dir, build(dir)
})

// Main runs the tests of a package, for its TestMain, and removes what was built.
func Main(m *testing.M) int {
	code := m.Run()
	if dir, err := built(); err == nil {
		_ = os.RemoveAll(dir)
	}
	return code
}

// New returns a Site with empty notes, and puts it into the environment of
// the test.
func New(t *testing.T) *Site {
	t.Helper()
	dir, err := built()
	if err != nil {
		t.Fatal(err)
	}
	s := &Site{Bin: filepath.Join(dir, "bin"), Library: filepath.Join(dir, "lib", "libpinwheel.so"), dir: t.TempDir()}
	t.Setenv("FAKE_DIR", s.dir)
	t.Setenv("PATH", s.Bin+":/usr/bin:/bin")
	for _, name := range []string{"LD_PRELOAD", "LD_LIBRARY_PATH"} {
		t.Setenv(name, "")
		os.Unsetenv(name)
	}
	for _, entry := range os.Environ() { // those of who runs the tests
		name, _, _ := strings.Cut(entry, "=")
		for _, prefix := range []string{"PINWHEEL_", "FI_", "UCX_", "OMPI_MCA_", "MV2_", "SLURM_", "SRUN_", "PMIX_"} {
			if strings.HasPrefix(name, prefix) {
				t.Setenv(name, "")
				os.Unsetenv(name)
			}
		}
	}
	return s
}

// Lines returns what was written: "argv" and "launcher" (its environment) by a
// launcher, "environ" by a program, "loaded" by the library.
func (s *Site) Lines(name string) []string {
	text, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil || len(text) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// Path returns the path of a file that the stand-ins may read or write.
func (s *Site) Path(name string) string { return filepath.Join(s.dir, name) }

func build(dir string) error {
	bin, lib := filepath.Join(dir, "bin"), filepath.Join(dir, "lib")
	for _, d := range []string{bin, lib} {
		if err := os.Mkdir(d, 0o777); err != nil {
			return err
		}
	}
	shared := func(name, source string, args ...string) error {
		return compile(filepath.Join(lib, name), source, append([]string{"-shared", "-fPIC", "-Wl,-soname," + name}, args...)...)
	}
	linked := func(name string, libraries ...string) error {
		args := []string{"-Wl,--no-as-needed", "-L" + lib, "-Wl,-rpath," + lib}
		for _, l := range libraries {
			args = append(args, "-l:"+l)
		}
		return compile(filepath.Join(bin, name), program, args...)
	}
	for _, err := range []error{
		shared("libpinwheel.so", library), os.WriteFile(filepath.Join(lib, "libpinwheel-go.so"), nil, 0o777), shared("libmpi.so.40", mpi), shared("libmpi.so.1", otherMPI),
		shared("libmpi_abi.so.0", otherMPI), linked("standard", "libmpi_abi.so.0"),
		shared("libasan.so.8", otherMPI), linked("checked", "libasan.so.8", "libmpi.so.40"),
		linked("app", "libmpi.so.40"), linked("other", "libmpi.so.1"), compile(filepath.Join(bin, "nompi"), noMPI), buildMeter(filepath.Join(lib, "libpinwheel-meter.so")),
		buildStatic(filepath.Join(bin, "static"), dir),
		os.WriteFile(filepath.Join(bin, "script"), []byte("#!/usr/bin/env bash\nexit 6\n"), 0o777),
	} {
		if err != nil {
			return err
		}
	}
	ucx := []byte("#!/bin/sh\necho '# Library version: 1.13.1'\n") // plans depend on it
	if err := os.WriteFile(filepath.Join(bin, "ucx_info"), ucx, 0o777); err != nil {
		return err
	}
	for name, text := range launchers {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(launcherHead+text+"\n"), 0o777); err != nil {
			return err
		}
	}
	return nil
}

func compile(out, source string, args ...string) error {
	cmd := exec.Command("gcc", append([]string{"-o", out, "-x", "c", "-", "-x", "none"}, args...)...)
	cmd.Stdin = strings.NewReader(source)
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("gcc, which the tests need: %w\n%s", err, text)
	}
	return nil
}

// buildMeter builds the real one.
func buildMeter(out string) error {
	_, here, _, _ := runtime.Caller(0)
	sources := filepath.Join(filepath.Dir(here), "../../../../mpishim")
	cmd := exec.Command("gcc", "-std=gnu11", "-shared", "-fPIC", "-fvisibility=hidden", "-I"+sources+"/preload", "-o", out,
		sources+"/meter/meter.c", sources+"/preload/symbol.c", "-ldl")
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("gcc: %w\n%s", err, text)
	}
	return nil
}

// buildStatic uses Go, since not every machine has a static C library.
func buildStatic(out, dir string) error {
	source := filepath.Join(dir, "static.go")
	if err := os.WriteFile(source, []byte(static), 0o666); err != nil {
		return err
	}
	cmd := exec.Command("go", "build", "-buildmode=exe", "-o", out, source)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, text)
	}
	return nil
}
