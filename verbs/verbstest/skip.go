package verbstest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"pinwheel/internal/testwait"
	"pinwheel/mem"
	"pinwheel/verbs"
)

// leastMemlock is the limit of locked memory, in bytes, without which nothing is
// tested that pins: io_uring takes some of it for itself.
const leastMemlock = 1 << 20

// Available skips the test if err, of opening a provider that pins, says that this
// machine does not have it or forbids it, or if it may pin next to nothing; any other
// error fails the test.
func Available(t testing.TB, err error) {
	t.Helper()
	NeedMemlock(t, leastMemlock)
	switch {
	case errors.Is(err, verbs.ErrUnsupported), errors.Is(err, verbs.ErrNotPermitted):
		t.Skip(err)
	case err != nil:
		t.Fatal(err)
	}
}

// NeedPinned skips the test if the provider may pin less than n bytes. Where
// there is a limit the rest of the test has it for itself: what the processes of one
// user pin by io_uring counts together, and those of other packages pin too.
func NeedPinned(t testing.TB, p verbs.Provider, n int64) {
	t.Helper()
	l := p.Limits()
	if l.MaxPinnedBytes < n {
		t.Skipf("needs to pin %s; %s allows %s", mem.FormatBytes(uint64(n)), l.PinnedSource,
			mem.FormatBytes(uint64(l.MaxPinnedBytes)))
	}
	if l.MaxPinnedBytes != mem.Unlimited {
		ownLimit(t)
	}
}

// limitLock is held by the one process of this user whose tests pin.
var limitLock struct {
	mu    sync.Mutex // protects all
	tests int
	file  *os.File
}

func ownLimit(t testing.TB) {
	t.Helper()
	limitLock.mu.Lock()
	defer limitLock.mu.Unlock()
	if limitLock.tests == 0 {
		f, err := os.OpenFile(filepath.Join(os.TempDir(), fmt.Sprintf("pinwheel-test-%d.lock", os.Geteuid())),
			os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		testwait.Until(t, "the tests of other packages have unpinned what they pin", func() bool {
			return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil
		})
		limitLock.file = f
	}
	limitLock.tests++
	t.Cleanup(func() {
		limitLock.mu.Lock()
		defer limitLock.mu.Unlock()
		if limitLock.tests--; limitLock.tests == 0 {
			limitLock.file.Close()
		}
	})
}

// NeedMemlock skips the test where neither it nor its Child can have an RLIMIT_MEMLOCK of this many bytes.
func NeedMemlock(t testing.TB, bytes uint64) {
	t.Helper()
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &l); err != nil {
		t.Fatal(err)
	}
	if l.Max < bytes && os.Geteuid() != 0 {
		t.Skipf("needs a limit of locked memory of %s; ulimit -l allows %s", mem.FormatBytes(bytes), mem.FormatBytes(l.Max))
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
