// Package settings is the one place that reads PINWHEEL_* variables.
//
// The table in table.go is the only list of them: parsing, warnings, the
// listing of "pinwheel info -c" and docs/settings.md come from it.
//
// A setting never fails a program. Load reports a value that it can't read and
// uses the default. It reports an unknown variable with the nearest known name.
// Values follow HPC usage: 4K, 16M, inf, auto, y, n.
//
// Everything here is a plain value or a pure function; FromEnvironment
// reads the environment.
package settings

//go:generate go run ./gen ../../docs/settings.md
