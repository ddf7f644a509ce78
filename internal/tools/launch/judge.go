package launch

import (
	"debug/elf"
	"fmt"
	"strings"
)

// verdict is what there is to know of a program before the library is preloaded into it.
type verdict struct {
	plain string // why it can't have the library, in one line; "" if nothing speaks against it
	mpi   string // which MPI it uses; "" if that isn't known
	first string // path of what has to be preloaded before the library; "" for nothing
}

// judge looks at the program of a command. What is not found here is not judged.
func judge(command []string, library program, environ []string) verdict {
	name := command[0]
	path, err := find(name)
	if err != nil {
		return verdict{} // the launcher finds it elsewhere, or says so
	}
	if isCarrier(path) {
		return judgeCarried(command, environ)
	}
	p, err := inspect(path)
	if err == nil && p.script != "" && !isShell(p.script) {
		if path, err = find(p.script); err == nil {
			p, err = inspect(path)
		}
	}
	switch {
	case err != nil:
		return verdict{}
	case p.script != "" || isShell(path):
		return verdict{plain: fmt.Sprintf("%s is a shell or a script for one, which are not preloaded; "+
			`put "pinwheel run" before the program that it starts`, name)}
	case p.loader == "":
		return verdict{plain: fmt.Sprintf("%s is statically linked, and nothing can be preloaded into it; "+
			"link it with shared libraries", name)}
	case p.machine != library.machine || p.class != library.class:
		return verdict{plain: fmt.Sprintf("%s is for %s, %s for %s; install Pinwheel for the program's architecture",
			name, architecture(p), library.path, architecture(library))}
	case isCarrier(path): // of a script
		return verdict{}
	}
	return judgeLinked(name, p, environ)
}

// judgeLinked goes on with what a program is linked with.
func judgeLinked(name string, p program, environ []string) verdict {
	objects, known := p.objects(environ)
	if !known {
		return verdict{}
	}
	mpi := mpiLibrary(objects)
	if mpi.name == "" {
		return verdict{plain: fmt.Sprintf("%s is linked with no MPI library", name)}
	}
	kind := kindOf(mpi.name, mpi.path)
	if kind == "" && !strings.HasPrefix(mpi.name, "libmpi_abi.") { // the standard's name: whose it is doesn't matter
		return verdict{plain: fmt.Sprintf("%s is linked with %s, an MPI library that Pinwheel does not know (it knows Open MPI "+
			"and those of the MPICH ABI and of the standard ABI)", name, mpi.name)}
	}
	first, why := sanitizerOf(name, objects)
	return verdict{plain: why, mpi: kind, first: first}
}

// judgeCarried looks for the program that an interpreter or a wrapper starts, and only at what that
// needs to have loaded first: it would not start otherwise. All else is known when it runs.
func judgeCarried(command, environ []string) verdict {
	if behind := behindWrappers(command); len(behind) > 0 && len(behind) < len(command) {
		return carried(behind[0], environ)
	}
	for _, word := range command[1:] { // of what isn't known here, options and all
		if v := carried(word, environ); v != (verdict{}) {
			return verdict{plain: fmt.Sprintf(`%s is built with AddressSanitizer, which is to be loaded first, but not into %s; `+
				`put "pinwheel run --" right before %s`, word, command[0], word)}
		}
	}
	return verdict{}
}

func carried(name string, environ []string) verdict {
	path, err := find(name)
	if err != nil {
		return verdict{}
	}
	p, err := inspect(path)
	if err != nil || p.loader == "" {
		return verdict{}
	}
	objects, _ := p.objects(environ)
	first, why := sanitizerOf(name, objects)
	return verdict{plain: why, first: first}
}

func architecture(p program) string {
	name := strings.ToLower(strings.TrimPrefix(p.machine.String(), "EM_"))
	if p.class == elf.ELFCLASS32 {
		return name + ", 32 bits"
	}
	return name
}
