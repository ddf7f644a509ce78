package vmmc

import (
	"errors"
	"os"
	"testing"

	"pinwheel/internal/testwait"
)

// Whoever has the turn while the exporter takes no notifications gives it up when the mapping ends. Else the end would
// wait for it with Import.mu held, and every Map with the end.
func TestEndOfAMappingWaitsForNoNotification(t *testing.T) {
	for _, c := range []struct {
		name   string
		update func(t *testing.T, m *Mapping, k uint64) error
	}{
		{"store", func(_ *testing.T, m *Mapping, k uint64) error { return m.Store(0, k) }},
		{"flush", func(t *testing.T, m *Mapping, k uint64) error {
			words(m.area)[0].Store(k)
			_, err := m.update.flush(testContext(t), m.area, true)
			return err
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := transportOf(t, "unix socket").begin(t)
			_, e, i, m := w.patient(t)
			updates := make(chan error, 1)
			go func() {
				for k := uint64(1); ; k++ {
					if err := c.update(t, m, k); err != nil {
						updates <- err
						return
					}
				}
			}()
			testwait.Until(t, "two notifications", func() bool { return e.node.Stats().Exports[0].Queued == 2 })
			testwait.Until(t, "one that waits", func() bool { return i.link.node.Stats().Imports[0].Queued > 0 })
			ended := make(chan error, 1)
			go func() { // as Unmap after its flush
				i.mu.Lock()
				defer i.mu.Unlock()
				i.mappings = nil
				ended <- m.end()
			}()
			if err := testwait.Receive(t, "the end of the mapping", ended); err != nil {
				t.Fatal(err)
			}
			if err := testwait.Receive(t, "the end of the updates", updates); !errors.Is(err, ErrUnmapped) {
				t.Errorf("what waited: %v", err)
			}
		})
	}
}

func TestUnmapSendsWhatWasStoredBefore(t *testing.T) {
	a := newArea(t, transports[2], 3, byHand)
	a.local[77] = 7
	if err := errors.Join(a.m.Unmap(), a.m.Unmap()); err != nil {
		t.Fatal(err)
	}
	a.local[78] = 8
	arrives(t, a.remote, 77, "\x07\x00\x00")
	if err := a.m.Flush(testContext(t)); !errors.Is(err, ErrUnmapped) {
		t.Errorf("a flush after Unmap: %v", err)
	}
	if err := a.m.Publish(testContext(t), 0, 1); !errors.Is(err, ErrUnmapped) {
		t.Errorf("Publish after Unmap: %v", err)
	}
	m, err := a.in.Map(0, a.local, MapOptions{})
	if err != nil {
		t.Fatal(err)
	}
	a.in.Unimport()
	for what, err := range map[string]error{
		"flush": m.Flush(testContext(t)), "store": m.Store(0, 1),
	} {
		if !errors.Is(err, ErrUnimported) {
			t.Errorf("%s after Unimport: %v", what, err)
		}
	}
	if err := errors.Join(m.Unmap(), a.importer.Free(a.local)); err != nil {
		t.Error(err)
	}
}

func TestFlushFailsWhenThePeerIsGone(t *testing.T) {
	a := newArea(t, transports[2], 3, byHand)
	if err := a.exporter.Close(); err != nil {
		t.Fatal(err)
	}
	testwait.Receive(t, "the end of the import", a.in.Done())
	a.local[1] = 1
	if err := a.m.Flush(testContext(t)); !errors.Is(err, ErrPeerGone) {
		t.Errorf("got %v", err)
	}
}

// When the kernel stops telling what was written, nothing is compared without Flush, and Flush compares it all.
func TestTrackingThatFailsEndsTheRounds(t *testing.T) {
	warned := make(chan string, 9)
	tr, options := transports[1], transports[1].options
	tr.options = func(t testing.TB, name string) Options {
		o := options(t, name)
		o.Warn = func(m string) { warned <- m }
		return o
	}
	a := newArea(t, tr, 4, MapOptions{Interval: -1, Copy: true})
	a.tracks(t)
	u, tracker := a.m.update, &a.importer.tracker
	bad, err := os.Open(os.DevNull) // which has no PAGEMAP_SCAN
	if err != nil {
		t.Fatal(err)
	}
	defer bad.Close()
	a.local[5] = 'x'
	file := tracker.pagemap
	tracker.pagemap = bad
	_, err = u.found(testContext(t))
	tracker.pagemap = file
	if err != nil {
		t.Fatal(err)
	}
	testwait.Receive(t, "a warning", warned)
	if _, err := u.found(testContext(t)); err != errUntracked {
		t.Errorf("another round: %v", err)
	}
	a.local[6] = 'y'
	a.flush(t)
	a.equal(t)
}
