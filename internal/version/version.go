// Package version says which Pinwheel this is.
package version

import "runtime/debug"

// stamp is what go build -ldflags "-X pinwheel/internal/version.stamp=..." sets.
var stamp string

// String returns the stamp, or the version of the module, or the commit that
// the program was built from.
func String() string {
	if stamp != "" {
		return stamp
	}
	bi, ok := debug.ReadBuildInfo()
	if !ok {
		return "(unknown)"
	}
	v := bi.Main.Version
	for _, s := range bi.Settings {
		if s.Key == "vcs.revision" && v == "(devel)" {
			return "devel-" + s.Value[:min(len(s.Value), 12)]
		}
	}
	return v
}
