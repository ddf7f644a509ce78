package launch

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Request is what the user asked for.
type Request struct {
	Command []string // as it was typed, not empty
	Environ []string // of this process
	// Library is the path of libpinwheel.so; "" looks where it is installed
	// beside this program.
	Library string
	// Settings are variables of package settings, NAME=value, beside those of
	// the environment.
	Settings []string
	// KeepCaches leaves the transport's own registration caches on.
	KeepCaches bool
	// NoPinwheel leaves libpinwheel.so out, for runs to compare with.
	NoPinwheel bool
	Tools      []string // libraries for the ranks to load before libpinwheel.so, by absolute path
	Variables  []string // NAME=value, for the ranks beside Settings
}

// preload returns the value of LD_PRELOAD for a rank that has none. first is what
// goes before all else, if anything.
func (r Request) preload(first string, library program) string {
	var objects []string
	if first != "" {
		objects = append(objects, first)
	}
	objects = append(objects, r.Tools...)
	if !r.NoPinwheel {
		objects = append(objects, library.path)
	}
	return strings.Join(objects, ":")
}

// Plan is a process to start. It is a plain value.
type Plan struct {
	Path    string // of the program
	Args    []string
	Environ []string
	// Plain says why nothing is preloaded, in one line: the command is as it was
	// typed. Empty if the ranks get the library.
	Plain string
	Notes []string // more lines for the user
}

// Make decides how the command is to be started. It fails only if that would
// not start at all without Pinwheel, with an error of exec.LookPath.
func Make(r Request) (Plan, error) {
	typed := r.Command
	var before []string
	before, r.Command = splitWrappers(typed, r.Environ)
	p, err := makeUnwrapped(r)
	if err != nil || len(before) == 0 {
		return p, err
	}
	if p.Plain == "" && clearsEnvironment(before) {
		p = Plan{Environ: r.Environ, Args: r.Command,
			Plain: "env keeps the settings of Pinwheel from " + r.Command[0] + "; drop its option -i"}
	}
	p.Args = append(before, p.Args...)
	p.Path, err = find(typed[0])
	return p, err
}

// makeUnwrapped is Make for a command that begins with a launcher or a program.
func makeUnwrapped(r Request) (Plan, error) {
	path, err := find(r.Command[0])
	if err != nil {
		return Plan{}, err
	}
	p := Plan{Path: path, Args: r.Command, Environ: r.Environ}
	inherited, _ := Getenv(r.Environ, preloadVar)
	if namesLibrary(inherited) {
		p.Environ = unsetenv(p.Environ, preloadVar)
		if rest := withoutLibrary(inherited); rest != "" {
			p.Environ = setenv(p.Environ, preloadVar, rest)
		}
	}
	l, starts := recognise(path, p.Environ)
	if starts && namesLibrary(inherited) {
		p.Notes = append(p.Notes,
			fmt.Sprintf("LD_PRELOAD of the environment would load %s into %s itself; it was taken out", libraryName,
				r.Command[0]))
	}
	library, err := findLibrary(r.Library)
	if err == nil {
		err = checkGoSide(library)
	}
	switch {
	case err != nil:
		p.Plain = err.Error()
	case starts && l == nil:
		p.Plain = fmt.Sprintf("%s is a launcher that is not known here; start every rank with Pinwheel instead: "+
			"%s ... pinwheel run -- program", r.Command[0], r.Command[0])
	case starts:
		p.throughLauncher(l, r, library)
	default:
		p.alone(r, library)
	}
	return p, nil
}

// find is exec.LookPath, but takes a program from the working directory if
// PATH says so, as a shell does.
func find(name string) (string, error) {
	path, err := exec.LookPath(name)
	if errors.Is(err, exec.ErrDot) {
		return "./" + path, nil
	}
	return path, err
}

// ProgramOf returns the name of the first program that the command starts, or
// the command's own if no other is found in it.
func ProgramOf(command, environ []string) string {
	_, command = splitWrappers(command, environ)
	if path, err := find(command[0]); err == nil {
		if l, _ := recognise(path, environ); l != nil {
			for _, s := range scan(command[1:], l.values) {
				if len(s.command) > 0 {
					return filepath.Base(s.command[0])
				}
			}
		}
	}
	return filepath.Base(command[0])
}

// StartsRanks reports whether the command is a launcher, known or not, behind any wrappers.
func StartsRanks(command, environ []string) bool {
	_, command = splitWrappers(command, environ)
	path, err := find(command[0])
	if err != nil {
		return false
	}
	_, starts := recognise(path, environ)
	return starts
}

// throughLauncher makes a launcher give everything to its ranks.
func (p *Plan) throughLauncher(l *launcher, r Request, library program) {
	segments := scan(r.Command[1:], l.values)
	var first []string // of each program
	for _, s := range segments {
		if len(s.command) == 0 {
			continue
		}
		v := judge(s.command, library, p.Environ)
		first = append(first, v.first)
		if p.Plain = v.plain; p.Plain != "" {
			return
		}
		if v.mpi != "" && l.mpi != "" && v.mpi != l.mpi {
			p.Notes = append(p.Notes,
				fmt.Sprintf("%s is linked with %s, but %s is the launcher of %s: its ranks may not find each other",
					s.command[0], v.mpi, r.Command[0], l.mpi))
		}
	}
	first = slices.Compact(first)
	if len(first) > 1 {
		p.Plain = "only some of the programs are built with AddressSanitizer; build all of them with it"
		return
	}
	environ, vars, notes := variables(p.Environ, r)
	passed, err := l.pass(segments, r.preload(strings.Join(first, ""), library), environ, vars)
	if err != nil {
		p.Plain = err.Error()
		return
	}
	p.Args = append([]string{r.Command[0]}, join(passed)...)
	p.Environ, p.Notes = environ, append(p.Notes, notes...)
	if l.environFirst {
		p.Environ = unsetenv(p.Environ, preloadVar)
	}
}

// alone preloads the program itself.
func (p *Plan) alone(r Request, library program) {
	v := judge(r.Command, library, p.Environ)
	if p.Plain = v.plain; p.Plain != "" {
		return
	}
	environ, _, notes := variables(p.Environ, r)
	inherited, _ := Getenv(environ, preloadVar)
	p.Environ = setenv(environ, preloadVar, withLibrary(inherited, r.preload(v.first, library)))
	p.Notes = append(p.Notes, notes...)
}

// variables returns the environment for the launcher, and which of its
// variables the ranks must get.
func variables(environ []string, r Request) (with []string, vars []variable, notes []string) {
	with = environ
	for _, s := range r.Settings {
		name, value, _ := strings.Cut(s, "=")
		with = setenv(with, name, value)
	}
	for _, entry := range with {
		if name, value, _ := strings.Cut(entry, "="); strings.HasPrefix(name, settingsPrefix) {
			vars = append(vars, variable{name, value})
		}
	}
	for _, v := range r.Variables {
		name, value, _ := strings.Cut(v, "=")
		with = setenv(with, name, value)
		vars = append(vars, variable{name, value})
	}
	if !r.KeepCaches {
		off, kept := turnCachesOff(with, r.Command)
		with, vars, notes = withAll(with, off), append(vars, off...), kept
		if !r.NoPinwheel {
			costs := registrationCosts(with)
			list := undo(slices.Concat(off, costs))
			with, vars = withAll(with, append(costs, list)), append(append(vars, costs...), list)
		}
	}
	return with, vars, notes
}

// absolute is for a path that ranks in other directories must find.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}
