package verbstest

import (
	"testing"

	"pinwheel/verbs"
)

// Pinned returns the bytes that the kernel counts as pinned or locked in this
// process: VmPin and VmLck.
func Pinned(t testing.TB) int64 {
	t.Helper()
	return StatusBytes(t, "VmPin") + StatusBytes(t, "VmLck")
}

// StatusBytes is verbs.StatusBytes, which it fails the test without.
func StatusBytes(t testing.TB, field string) int64 {
	t.Helper()
	n, err := verbs.StatusBytes(field)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
