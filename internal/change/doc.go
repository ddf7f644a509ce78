// Package change performs every kind of change that can put other pages
// behind an address, on memory of its own: for the start-up self-test of
// package vmwatch and for the matrix of make test-stale.
//
// A Subject owns its mappings, descriptors and segments until Free. Nothing
// here may run on memory that somebody else uses. Safe for concurrent use on
// different Subjects.
package change
