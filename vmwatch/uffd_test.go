//go:build amd64

package vmwatch

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"pinwheel/internal/uffd"
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
