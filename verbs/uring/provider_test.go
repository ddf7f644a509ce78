package uring_test

import (
	"testing"

	"pinwheel/verbs"
	"pinwheel/verbs/uring"
	"pinwheel/verbs/verbstest"
)

func open(t testing.TB) verbs.Provider {
	t.Helper()
	p, err := uring.Open(uring.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestConformance(t *testing.T) {
	verbstest.TestProvider(t, open, verbstest.ChecksMappings, verbstest.ChecksAccess)
}
