package verbstest

import (
	"errors"
	"os"
	"testing"

	"pinwheel/mem"
	"pinwheel/verbs"
)

// Available skips the test if err, of opening a provider, says that this
// machine does not have it or forbids it; any other error fails the test.
func Available(t testing.TB, err error) {
	t.Helper()
	switch {
	case errors.Is(err, verbs.ErrUnsupported), errors.Is(err, verbs.ErrNotPermitted):
		t.Skip(err)
	case err != nil:
		t.Fatal(err)
	}
}

// NeedPinned skips the test if the provider may pin less than n bytes.
func NeedPinned(t testing.TB, p verbs.Provider, n int64) {
	t.Helper()
	if l := p.Limits(); l.MaxPinnedBytes < n {
		t.Skipf("needs to pin %s; %s allows %s", mem.FormatBytes(uint64(n)), l.PinnedSource, mem.FormatBytes(uint64(l.MaxPinnedBytes)))
	}
}

// NeedOwnUser skips a test whose Child must be the only process of its user.
func NeedOwnUser(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can give a child process a user of its own")
	}
}

// ReleasesLate reports whether the kernel unpins only some time after a
// Deregister that returned, as io_uring did before Linux 6.4. The provider
// should not have been used before.
func ReleasesLate(t testing.TB, p verbs.Provider) bool {
	t.Helper()
	_, r := Map(t, 64*mem.PageSize)
	g, err := p.Register(r, write)
	if err != nil {
		t.Fatal(err)
	}
	pinned := Pinned(t)
	if err := p.Deregister(g); err != nil {
		t.Fatal(err)
	}
	return Pinned(t) >= pinned
}

// NeedPromptRelease skips a test that compares what the kernel counts with
// what is registered, where the kernel ReleasesLate.
func NeedPromptRelease(t testing.TB, p verbs.Provider) {
	t.Helper()
	if ReleasesLate(t, p) {
		t.Skip("this kernel unpins some time after deregistration, as io_uring did before Linux 6.4")
	}
}
