package vmmc

import (
	"errors"
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
