package launch

import (
	"path/filepath"
	"slices"
	"strings"
)

const (
	preloadVar  = "LD_PRELOAD"
	libraryName = "libpinwheel.so"
)

// SplitPreload returns the objects of a value of LD_PRELOAD: ld.so(8)
// separates them by colons or spaces, and neither can be escaped.
func SplitPreload(value string) []string {
	return strings.FieldsFunc(value, func(r rune) bool { return r == ':' || r == ' ' })
}

// namesLibrary reports whether a value of LD_PRELOAD names our library.
func namesLibrary(value string) bool {
	return withoutLibrary(value) != strings.Join(SplitPreload(value), ":")
}

func withoutLibrary(value string) string {
	isOurs := func(object string) bool { return filepath.Base(object) == libraryName }
	return strings.Join(slices.DeleteFunc(SplitPreload(value), isOurs), ":")
}

// withLibrary puts our library, or several joined by colons, before what is preloaded
// already: a tool that calls PMPI_Send from its MPI_Send would hide the call from whoever
// comes after it. Sanitizers must be first.
func withLibrary(value, library string) string {
	var first, rest []string
	for _, object := range append(SplitPreload(library), SplitPreload(withoutLibrary(value))...) {
		switch same := func(o string) bool { return filepath.Base(o) == filepath.Base(object) }; {
		case !sanitizer(object):
			rest = append(rest, object)
		case !slices.ContainsFunc(first, same):
			first = append(first, object)
		}
	}
	return strings.Join(append(first, rest...), ":")
}

func sanitizer(object string) bool {
	base := filepath.Base(object)
	names := []string{"libasan", "libtsan", "libubsan", "liblsan", "libclang_rt."}
	return slices.ContainsFunc(names, func(prefix string) bool { return strings.HasPrefix(base, prefix) })
}
