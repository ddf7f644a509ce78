package launch

import (
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"pinwheel/internal/outfile"
	"pinwheel/internal/settings"
)

const settingsPrefix = settings.Prefix

// libraryDirs are where libpinwheel.so is, relative to the directory of this
// program: in a build tree, and installed under a prefix.
var libraryDirs = []string{".", "../lib", "../lib64", "../lib/pinwheel", "../lib64/pinwheel"}

// FindLibrary returns the absolute path of libpinwheel.so: the one asked for,
// or if that is "" the one installed with this program. The error is one line
// that says what is wrong with it.
func FindLibrary(asked string) (string, error) {
	p, err := findLibrary(asked)
	return p.path, err
}

func findLibrary(asked string) (program, error) {
	if asked != "" {
		return checkLibrary(absolute(asked))
	}
	executable, err := os.Executable()
	if err != nil {
		return program{}, fmt.Errorf("cannot look for %s: %w", libraryName, err)
	}
	dirs := []string{filepath.Dir(executable)}
	if target, err := filepath.EvalSymlinks(executable); err == nil && filepath.Dir(target) != dirs[0] {
		dirs = append(dirs, filepath.Dir(target))
	}
	for _, dir := range dirs {
		for _, sub := range libraryDirs {
			path := filepath.Join(dir, sub, libraryName)
			if _, err := os.Stat(path); err == nil {
				return checkLibrary(path)
			}
		}
	}
	return program{}, fmt.Errorf("%s is not installed beside %s; name it with --library", libraryName, executable)
}

// Meter counts what a rank takes, with Pinwheel and without (mpishim/meter). It is installed beside libpinwheel.so.
const Meter = "libpinwheel-meter.so"

// GoSide is what libpinwheel.so loads from its own directory.
const GoSide = "libpinwheel-go.so"

func checkGoSide(library program) error {
	path := filepath.Join(filepath.Dir(library.path), GoSide)
	if _, err := os.Stat(path); err != nil {
		return fmt.Errorf("%s, which %s needs beside it, is missing; install both", path, libraryName)
	}
	return nil
}

// checkLibrary says whether a dynamic linker will take the file.
func checkLibrary(path string) (program, error) {
	if strings.ContainsAny(path, ": ") {
		return program{}, fmt.Errorf("the path of %s has a colon or a space, which LD_PRELOAD can't hold; move it", path)
	}
	in, err := outfile.OpenInput(path)
	if errors.Is(err, fs.ErrNotExist) {
		return program{}, fmt.Errorf("%s does not exist; name %s with --library", path, libraryName)
	}
	if err != nil {
		return program{}, fmt.Errorf("%s can't be read: %w", path, err)
	}
	defer in.Close()
	f, err := elf.NewFile(in)
	if err != nil {
		return program{}, fmt.Errorf("%s is no shared library: %w", path, err)
	}
	if f.Type != elf.ET_DYN {
		return program{}, fmt.Errorf("%s is no shared library", path)
	}
	return program{path: path, machine: f.Machine, class: f.Class}, nil
}
