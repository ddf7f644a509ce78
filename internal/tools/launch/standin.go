package launch

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// standIn is a program that starts this one under the name of a launcher: "pinwheel run -- mpirun". A modulefile puts
// directories into PATH that have a link to it, of the launcher's name: it is in the directory above (packaging/modules).
const standIn = "pinwheel-stand-in"

// LeaveOutStandIns takes those directories out of PATH, of this process and so of what it starts, lest it should start
// itself for ever: the launcher is the one behind them.
func LeaveOutStandIns() error {
	hasStandIn := func(dir string) bool { return exists(dir + "/../" + standIn) } // not cleaned: dir may be a link
	path := filepath.SplitList(os.Getenv("PATH"))
	if !slices.ContainsFunc(path, hasStandIn) {
		return nil
	}
	return os.Setenv("PATH", strings.Join(slices.DeleteFunc(path, hasStandIn), string(os.PathListSeparator)))
}
