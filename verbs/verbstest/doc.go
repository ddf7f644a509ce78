// Package verbstest is the conformance suite of verbs.Provider: what every
// provider must do, run by the tests of each of them.
//
// It owns the memory that it registers, mapped outside the Go heap and
// without huge pages, so that the kernel's counters move by whole small pages.
//
// # Caveats
//
// The suite registers at most a few MiB at a time and opens a few providers,
// one after the other. It asserts nothing about time.
package verbstest
