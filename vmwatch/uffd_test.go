//go:build amd64 || arm64

package vmwatch

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"pinwheel/internal/change"
	"pinwheel/internal/testwait"
	"pinwheel/internal/uffd"
	"pinwheel/mem"
)

func TestUserfaultfdClosedByTheProgramNeitherBlocksNorGoesStale(t *testing.T) {
	w := open(t, "uffd")
	s, _ := subject(t)
	p := pin(t, w, s.Range)
	t.Cleanup(func() { _ = w.Close() }) // fails for the descriptor that is gone
	n := w.source.note.(*uffdNotifier)
	if err := unix.Close(n.fd); err != nil { // as a program that closes all descriptors does
		t.Fatal(err)
	}
	n.fd = -1
	unmap(t, s, s.Range)
	if survivors(w, p)[0] {
		t.Error("still handed out")
	}
}

// openWithoutGuards opens a Watcher that takes the kernel for one without MADV_GUARD_INSTALL.
func openWithoutGuards(t testing.TB) *Watcher {
	t.Helper()
	w := openOrExplain(t, "uffd")
	w.source.note.(*uffdNotifier).guards = false
	return w
}

func TestKernelIsKnownToHaveGuards(t *testing.T) {
	i := slices.IndexFunc(change.Kinds, func(k change.Kind) bool { return k.Name == "MADV_GUARD_INSTALL" })
	s, _ := subject(t)
	if err := change.Kinds[i].Do(s); hasGuards() != (err == nil) {
		t.Errorf("hasGuards is %t, and a guard: %v", hasGuards(), err)
	} else {
		t.Logf("a guard: %v", err)
	}
}

// Where the kernel has no guards, hits trust events.
func TestEventsTellOfAllChangesButGuards(t *testing.T) {
	w := openWithoutGuards(t)
	for _, k := range change.Kinds {
		if strings.HasPrefix(k.Name, "MADV_GUARD") {
			continue
		}
		t.Run(k.Name, func(t *testing.T) {
			switch noticed, refused, err := w.notices(k); {
			case err != nil:
				t.Fatal(err)
			case refused != nil:
				t.Skip(refused)
			case !noticed && !k.Keeps:
				t.Error("went unseen")
			}
		})
	}
}

func TestPageFaultsElsewhereAreNothingToAHit(t *testing.T) {
	w := openWithoutGuards(t)
	s, _ := subject(t)
	p := pin(t, w, s.Range)
	other, _ := subject(t)
	other.Fill(1)
	if !w.Unchanged(p.token) {
		t.Error("a page fault elsewhere makes a hit doubtful")
	}
}

// The event of MADV_DONTNEED comes before the pages go: who registers them in between has the old ones.
func TestWhatHasLostPagesIsDoubted(t *testing.T) {
	w := openWithoutGuards(t)
	s, _ := subject(t)
	p := pin(t, w, s.Range)
	if err := unix.Madvise(s.Bytes(), unix.MADV_DONTNEED); err != nil {
		t.Fatal(err)
	}
	s.Fill(2)
	if survivors(w, p)[0] {
		t.Error("still handed out")
	}
	testwait.Until(t, "the event is published", func() bool {
		w.Drain(func(mem.Range) {})
		return w.source.note.(*uffdNotifier).removed.overlap(s.Range)
	})
	again := pin(t, w, s.Range)
	other, _ := subject(t)
	other.Fill(1)
	if w.Unchanged(again.token) {
		t.Error("trusted, though its pages may go now")
	}
}

// A program frees memory in one thread, and another has its address before the event is read. Here, nobody reads it
// meanwhile.
func TestNoHitOnceTheAddressIsAnothers(t *testing.T) {
	testwait.Bound(t)
	need(t, "uffd")
	fd, err := uffd.Open(uffdFeatures)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	pages, err := openPages()
	if err != nil {
		t.Fatal(err)
	}
	defer pages.close()
	n := &uffdNotifier{fd: fd, pages: pages, crowd: newCrowd()}
	s, _ := subject(t)
	v, err := n.arm(s.Range)
	if err != nil {
		t.Fatal(err)
	}
	u := v.(*uffdRange)
	u.pinning()
	s.Fill(1)
	if err := u.pinned(); err != nil {
		t.Fatal(err)
	}
	if !u.unchanged() {
		t.Error("changed, though nothing has happened")
	}
	unmapped := make(chan error, 1)
	go func() { unmapped <- s.Unmap(s.Range) }()
	// It is another mapping once one can be made there.
	testwait.Until(t, "the address is free", func() bool {
		_, err := mmapAt(s.Range.Start, s.Range.Len(), unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_FIXED_NOREPLACE, -1)
		return err == nil
	})
	if u.unchanged() {
		t.Error("handed out, though the address is another's")
	}
	var event [32]byte // struct uffd_msg
	testwait.Until(t, "the event is there", func() bool {
		n, err := unix.Read(fd, event[:])
		return err == nil && n == len(event)
	})
	if err := testwait.Receive(t, "the end of munmap", unmapped); err != nil {
		t.Fatal(err)
	}
}

func TestMemoryOfAnotherUserfaultfdIsRefused(t *testing.T) {
	w := openOrExplain(t, "uffd")
	w.frames = nil
	s, _ := subject(t)
	fd, err := uffd.Open(uffdFeatures)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd) // disarms, so that Free waits for nobody
	if err := uffd.Register(fd, s.Range); err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.Watch(s.Range); !errors.Is(err, ErrNotCacheable) {
		t.Errorf("got %v, want ErrNotCacheable", err)
	}
}
