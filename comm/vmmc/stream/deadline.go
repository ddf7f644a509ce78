package stream

import (
	"errors"
	"net"
	"sync"
	"time"
)

// deadline is a time after which calls fail. It can be set while calls wait: they must look again.
type deadline struct {
	// mu is a leaf.
	mu    sync.Mutex
	timer *time.Timer
	over  chan struct{} // closed at the time; nil: never
}

func (d *deadline) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	if d.over = nil; t.IsZero() {
		return
	}
	over := make(chan struct{})
	d.over = over
	if left := time.Until(t); left > 0 {
		d.timer = time.AfterFunc(left, func() { close(over) })
	} else {
		close(over)
	}
}

// wait returns a channel that is closed at the time that is set now.
func (d *deadline) wait() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.over
}

func (d *deadline) passed() bool {
	select {
	case <-d.wait():
		return true
	default:
		return false
	}
}

// SetDeadline sets those of Read and Write. It always succeeds on a Conn that is open.
func (c *Conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// SetReadDeadline sets the time after which Read fails with os.ErrDeadlineExceeded; the zero Time is never.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.setDeadline(&c.readDeadline, t) }

// SetWriteDeadline is SetReadDeadline for Write. See the caveats of the package.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.setDeadline(&c.writeDeadline, t) }

func (c *Conn) setDeadline(d *deadline, t time.Time) error {
	select {
	case <-c.closed:
		return c.opError("set", net.ErrClosed)
	default:
	}
	d.set(t)
	c.stir()
	return nil
}
