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
