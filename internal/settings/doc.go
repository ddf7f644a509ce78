// Package settings is the one place that reads PINWHEEL_* variables.
//
// The table in table.go is the only list of them: parsing, warnings, the
// listing of "pinwheel info -c" and the section in README.md come from it.
//
// A setting never fails a program: a value that can't be read is reported and
// its default used; an unknown variable is reported with the name that was
// probably meant. Values follow the usage of the HPC world: 4K, 16M, inf,
// auto, y, n.
//
// Everything here is a plain value or a pure function; FromEnvironment
// reads the environment.
package settings

//go:generate go run ./gen ../../README.md
