package launch

import (
	"bufio"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"pinwheel/internal/infile"
)

// program is what a file says of itself.
type program struct {
	path    string
	script  string // interpreter of a script, "" for an ELF file
	machine elf.Machine
	class   elf.Class
	loader  string // dynamic linker; "" if statically linked
}

var errNotProgram = errors.New("neither an ELF file nor a script")

// inspect reads the head of an executable file.
func inspect(path string) (program, error) {
	p := program{path: path}
	f, err := infile.Open(path)
	if err != nil {
		return p, err
	}
	defer f.Close()
	line, _ := bufio.NewReader(io.LimitReader(f, 256)).ReadString('\n') // BINPRM_BUF_SIZE of <linux/binfmts.h>
	if rest, ok := strings.CutPrefix(line, "#!"); ok {
		p.script = interpreter(strings.Fields(rest))
		return p, nil
	}
	e, err := elf.NewFile(f)
	if err != nil {
		return p, errNotProgram
	}
	p.machine, p.class = e.Machine, e.Class
	for _, segment := range e.Progs {
		if segment.Type == elf.PT_INTERP {
			name, err := io.ReadAll(io.LimitReader(segment.Open(), 4096))
			if err != nil {
				return p, err
			}
			p.loader = strings.TrimRight(string(name), "\x00")
		}
	}
	return p, nil
}

// interpreter is the program of a script's first line, the one that env(1) would start.
func interpreter(words []string) string {
	if len(words) == 0 {
		return "/bin/sh"
	}
	if filepath.Base(words[0]) != "env" {
		return words[0]
	}
	for _, w := range words[1:] {
		if !strings.HasPrefix(w, "-") && !strings.Contains(w, "=") {
			return w
		}
	}
	return words[0]
}

var shells = []string{"sh", "bash", "dash", "ash", "ksh", "mksh", "zsh", "csh", "tcsh", "fish", "busybox"}

func isShell(path string) bool { return slices.Contains(shells, filepath.Base(path)) }

// carriers start or load an MPI program later: interpreters and wrappers.
var carriers = regexp.MustCompile(`^(python[0-9.]*|julia|R|Rscript|perl|ruby|octave.*|matlab|java|env|numactl|taskset|nice|time|timeout|stdbuf|` +
	`hwloc-bind|likwid-pin|likwid-mpirun|perf|gdb|lldb|strace|ltrace|valgrind.*|rr|xterm|cgexec|chrt|setarch|prlimit)$`)

// mpiObjects are names of MPI libraries: libmpi.so.40, libmpich.so.12, libmpi_cray.so.12, libmpifort.so.12, ...
var mpiObjects = regexp.MustCompile(`(?m)^\s*(libmpi[a-z0-9_-]*\.so[.0-9]*)(?: => (\S+))?`)

// mpiLibrary returns the MPI library that the dynamic linker would load for
// the program: its name and its path, "" if there is none. known is false if the
// dynamic linker can't be asked.
func (p program) mpiLibrary(environ []string) (name, path string, known bool) {
	out := Output(environ, p.loader, "--list", p.path) // ld.so(8); runs nothing of the program
	if !strings.Contains(out, "libc.") {
		return "", "", false // another kind of dynamic linker
	}
	for _, m := range mpiObjects.FindAllStringSubmatch(out, -1) {
		if path == "" || strings.HasPrefix(m[1], "libmpi.so") { // the C library, if it is there
			name, path = m[1], m[2]
		}
	}
	return name, path, true
}

// The MPI libraries whose handles libpinwheel.so knows.
const (
	openMPI = "Open MPI"
	mpich   = "MPICH" // and all others of the MPICH ABI initiative
)

// kindOf returns which of them a library is, "" for another. A file that can't
// be read is taken for what its name says.
func kindOf(name, path string) string {
	if f, err := elf.Open(path); err == nil {
		defer f.Close()
		symbols, _ := f.DynamicSymbols()
		needed, _ := f.ImportedLibraries()
		if slices.ContainsFunc(symbols, func(s elf.Symbol) bool { return s.Name == "ompi_mpi_comm_world" }) ||
			slices.Contains(needed, "libopen-pal.so.40") { // a binding on top of it
			return openMPI
		}
	}
	switch {
	case strings.HasSuffix(name, ".so.12"), strings.HasPrefix(name, "libmpich"): // version of the ABI
		return mpich
	case strings.HasSuffix(name, ".so.40"):
		return openMPI
	}
	return ""
}

// judge says in one line why a program can't have the library preloaded, ""
// if nothing speaks against it, and which MPI it uses, "" if that isn't known.
// A name that is not found here is not judged.
func judge(name string, library program, environ []string) (why, mpi string) {
	path, err := find(name)
	if err != nil || carriers.MatchString(filepath.Base(path)) {
		return "", "" // the launcher finds it elsewhere, or says so; or what it starts is not known
	}
	p, err := inspect(path)
	if err == nil && p.script != "" && !isShell(p.script) {
		if path, err = find(p.script); err == nil {
			p, err = inspect(path)
		}
	}
	switch {
	case err != nil:
		return "", ""
	case p.script != "" || isShell(path):
		return fmt.Sprintf("%s is a shell or a script for one, which are not preloaded; "+
			`put "pinwheel run" before the program that it starts`, name), ""
	case p.loader == "":
		return fmt.Sprintf("%s is statically linked, and nothing can be preloaded into it; link it with shared libraries",
			name), ""
	case p.machine != library.machine || p.class != library.class:
		return fmt.Sprintf("%s is for %s, %s for %s; install Pinwheel for the program's architecture", name, architecture(p),
			library.path, architecture(library)), ""
	case carriers.MatchString(filepath.Base(path)): // of a script
		return "", ""
	}
	object, where, known := p.mpiLibrary(environ)
	if !known {
		return "", ""
	}
	if object == "" {
		return fmt.Sprintf("%s is linked with no MPI library", name), ""
	}
	if strings.HasPrefix(object, "libmpi_abi.") { // the standard's name: whose it is doesn't matter
		return "", ""
	}
	if mpi = kindOf(object, where); mpi == "" {
		return fmt.Sprintf("%s is linked with %s, an MPI library that Pinwheel does not know (it knows Open MPI and those "+
			"of the MPICH ABI and of the standard ABI)", name, object), ""
	}
	return "", mpi
}

func architecture(p program) string {
	name := strings.ToLower(strings.TrimPrefix(p.machine.String(), "EM_"))
	if p.class == elf.ELFCLASS32 {
		return name + ", 32 bits"
	}
	return name
}
