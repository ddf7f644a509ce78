package launch

import (
	"bufio"
	"debug/elf"
	"errors"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"pinwheel/internal/outfile"
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
	f, err := outfile.OpenInput(path)
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

// carriers start or load an MPI program later: interpreters, and wrappers whose options are not known here.
var carriers = regexp.MustCompile(`^(python[0-9.]*|julia|R|Rscript|perl|ruby|octave.*|matlab|java|` +
	`hwloc-bind|likwid-pin|likwid-mpirun|perf|gdb|lldb|strace|ltrace|valgrind.*|rr|xterm|cgexec|setarch|prlimit)$`)

// isCarrier reports whether what a program does is known only when it has started another one.
func isCarrier(path string) bool {
	base := filepath.Base(path)
	_, wraps := wrappers[base]
	return wraps || carriers.MatchString(base)
}

// mpiObjects are names of MPI libraries: libmpi.so.40, libmpich.so.12, libmpi_cray.so.12, libmpifort.so.12, ...
var mpiObjects = regexp.MustCompile(`^libmpi[a-z0-9_-]*\.so[.0-9]*$`)

// object is a shared library that a program is linked with.
type object struct{ name, path string } // path is "" if it is not found

var listed = regexp.MustCompile(`(?m)^\s*(\S+\.so[.0-9]*)(?: => (/\S+))?`)

// objects returns what the dynamic linker would load with the program. known is
// false if the dynamic linker can't be asked.
func (p program) objects(environ []string) (list []object, known bool) {
	out := Output(environ, p.loader, "--list", p.path) // ld.so(8); runs nothing of the program
	for _, m := range listed.FindAllStringSubmatch(out, -1) {
		list = append(list, object{m[1], m[2]})
	}
	return list, strings.Contains(out, "libc.") // another kind of dynamic linker
}

// mpiLibrary returns the MPI library among objects, with the name "" if there is none.
func mpiLibrary(objects []object) (mpi object) {
	for _, o := range objects {
		if mpiObjects.MatchString(o.name) && (mpi.name == "" || strings.HasPrefix(o.name, "libmpi.so")) {
			mpi = o // the C library, if it is there
		}
	}
	return mpi
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
