package stack

import (
	"os"
	"slices"
	"strconv"
	"strings"

	"pinwheel/internal/tools/launch"
)

// Job is a program on some ranks.
type Job struct {
	Stack   Stack
	Device  Device
	Ranks   int
	Program []string // an absolute path, and arguments
	// Under is a command to put before the launcher, such as "bin/pinwheel", "run".
	Under []string
	// User is the number of the user that Under makes it run as, so that the job may write its scratch. 0: none.
	User int
	// NoCache turns the transport's own registration cache off. "pinwheel run" does so by itself.
	NoCache bool
	Options []string // more options of the launcher
	Preload []string // libraries that the ranks preload before the device's
	Environ []string // more variables, for the launcher and the ranks; they replace the stack's
}

// foreign are prefixes of variables that would change what a stack does. Those
// of who starts the tests are dropped.
var foreign = []string{
	"UCX_", "OMPI_", "FI_", "MPIR_", "HYDRA_", "PINWHEEL_", "SOFTVERBS_", "LD_PRELOAD=", "LD_LIBRARY_PATH=", "SYSFS_PATH=",
}

// Environ is the environment of this process without what would change what a stack does.
func Environ() []string {
	return slices.DeleteFunc(os.Environ(), func(entry string) bool {
		return slices.ContainsFunc(foreign, func(prefix string) bool { return strings.HasPrefix(entry, prefix) })
	})
}

// Command returns the command line and the environment of the job. Each
// process adds what it did on the device to the file stats.
func (j Job) Command(stats string) (args, environ []string) {
	vars := append(j.Device.variables(j.Preload...), "SOFTVERBS_STATS="+stats)
	launcher := []string{j.Stack.launcher(), "-n", strconv.Itoa(j.Ranks)}
	args = slices.Concat(j.Under, launcher, j.Options, j.Stack.given(vars), j.Program)
	environ = slices.Concat(Environ(), j.Stack.settings, j.Environ)
	if j.NoCache {
		environ = launch.WithoutCaches(environ)
	}
	return args, environ
}
