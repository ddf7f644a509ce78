package stack

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// compilers by the extension of a program's first source.
var compilers = map[string]string{".c": "mpicc", ".cc": "mpicxx", ".f90": "mpifort"}

// Compile makes the program out of its sources with the compilers of the
// stack's MPI library, unless it is newer than all files in their directories.
func (s Stack) Compile(out string, sources ...string) error { return s.compile(out, sources) }

// CompileModule makes a shared object of the sources in the same way, with MODULE defined.
func (s Stack) CompileModule(out string, sources ...string) error {
	return s.compile(out, sources, "-shared", "-fPIC", "-DMODULE")
}

func (s Stack) compile(out string, sources []string, options ...string) error {
	if upToDate(out, sources) {
		return nil
	}
	dir := filepath.Dir(out)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	compiler := compilers[filepath.Ext(sources[0])] + "." + s.MPI
	args := append([]string{"-O2", "-g", "-w", "-fno-omit-frame-pointer", "-pthread", "-o", out}, options...)
	if filepath.Ext(sources[0]) == ".f90" {
		args = append(args, "-J", dir) // module files
	} else {
		args = append(args, "-DOMPI_SKIP_MPICXX") // the bindings that MPI 3 removed
	}
	if text, err := exec.Command(compiler, append(args, sources...)...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %v: %w\n%s", compiler, sources, err, text)
	}
	return nil
}

func upToDate(out string, sources []string) bool {
	made, err := os.Stat(out)
	if err != nil {
		return false
	}
	var dirs []string
	for _, source := range sources {
		dirs = append(dirs, filepath.Dir(source))
	}
	slices.Sort(dirs)
	for _, dir := range slices.Compact(dirs) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return false
		}
		for _, e := range entries {
			if info, err := e.Info(); err != nil || info.ModTime().After(made.ModTime()) {
				return false
			}
		}
	}
	return true
}
