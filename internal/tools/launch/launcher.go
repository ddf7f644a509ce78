package launch

import (
	"context"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// variable is one to be set for the ranks.
type variable struct{ name, value string }

// launcher describes a program that starts the ranks of a job. Each one has a file.
type launcher struct {
	name    string // for people
	mpi     string // the MPI library whose programs it starts; "" for any
	bases   []string
	version *regexp.Regexp // in what "--version" prints, for those named mpirun or mpiexec
	values  map[string]int // options with arguments, for scan
	// pass returns the segments with LD_PRELOAD and the variables given to the
	// ranks. environ is that of the launcher, which has the variables but not
	// LD_PRELOAD of ours.
	pass func(segments []segment, library string, environ []string, vars []variable) ([]segment, error)
	// environFirst: LD_PRELOAD of its environment goes before what its options say. pass has it in there.
	environFirst bool
}

var launchers = []*launcher{&openMPIRun, &hydra, &slurm}

// otherLaunchers are known to start ranks in ways that are not known here.
var otherLaunchers = []string{"aprun", "jsrun", "lrun", "ibrun", "prun", "flux", "mpirun_rsh", "mpiexec_mpt",
	"mpirun_mpt", "poe", "ccc_mprun",
	"palsrun", "runjob", "yod", "mpprun", "charmrun"}

// recognise returns the launcher behind a command: one of launchers, or nil and
// whether it is a launcher at all. path is where the command was found.
func recognise(path string, environ []string) (l *launcher, starts bool) {
	names := []string{filepath.Base(path)}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		names = append(names, filepath.Base(target))
	}
	for _, name := range names {
		for _, l := range launchers {
			if slices.Contains(l.bases, name) {
				return l, true
			}
		}
		if slices.Contains(otherLaunchers, name) {
			return nil, true
		}
	}
	if !strings.HasPrefix(names[0], "mpirun") && !strings.HasPrefix(names[0], "mpiexec") {
		return nil, false
	}
	version := Output(environ, path, "--version")
	for _, l := range launchers {
		if l.version != nil && l.version.MatchString(version) {
			return l, true
		}
	}
	return nil, true
}

// Output returns what a command prints, to whichever stream and whatever its
// status, and nothing if it is not there or takes longer than a person would
// wait. It is not preloaded.
func Output(environ []string, command ...string) string {
	path, err := find(command[0])
	if err != nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, command[1:]...)
	cmd.Env = unsetenv(environ, preloadVar)
	cmd.WaitDelay = time.Second
	out, _ := cmd.CombinedOutput() // what was printed is all that counts
	return string(out)
}

// LauncherNamed returns the kind of the launcher that a command is, "" if it is
// none whose ranks can be preloaded.
func LauncherNamed(command string, environ []string) string {
	path, err := find(command)
	if err != nil {
		return ""
	}
	if l, _ := recognise(path, environ); l != nil {
		return l.name
	}
	return ""
}
