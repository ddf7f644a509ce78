// Package faults tests what serving files does when disks and networks fail. Its tests break both, so they run in the
// guests of the test bed only: make test-files-guest, and make test-files-2node.
package faults
