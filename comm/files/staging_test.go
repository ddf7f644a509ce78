package files

import (
	"bytes"
	"errors"
	"testing"

	"pinwheel/comm/vmmc"
	"pinwheel/internal/testwait"
)

// waitingForStaging returns a client whose upload waits for memory that the server has announced and nobody exports.
func waitingForStaging(t *testing.T, w *world) (*Client, <-chan error) {
	c := w.client()
	u, err := c.Create(testContext(t), "f", CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c.address = "unix:" + testwait.ShortDir(t) + "/nobody"
	before := c.requests.Load()
	ended := make(chan error, 1)
	go func() {
		_, err := u.CopyFrom(testContext(t), bytes.NewReader(make([]byte, 1<<20)), 0, 1<<20)
		ended <- err
	}()
	testwait.Until(t, "the answer of the server", func() bool {
		return c.requests.Load() > before && len(c.room) == 0
	})
	return c, ended
}

func TestServerThatEndsBeforeItsMemoryIsImported(t *testing.T) {
	overEach(t, ServerOptions{AllowWrite: true}, func(t *testing.T, w *world) {
		_, ended := waitingForStaging(t, w)
		if err := w.server.Close(); err != nil {
			t.Fatal(err)
		}
		if err := testwait.Receive(t, "the end of the write", ended); !errors.Is(err, vmmc.ErrPeerGone) {
			t.Error(err)
		}
	})
}

func TestClientThatIsClosedWhileItImports(t *testing.T) {
	overEach(t, ServerOptions{AllowWrite: true}, func(t *testing.T, w *world) {
		c, ended := waitingForStaging(t, w)
		closed := make(chan error, 1)
		go func() { closed <- c.Close() }()
		if err := testwait.Receive(t, "the end of the write", ended); !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
		if err := testwait.Receive(t, "the end of Close", closed); err != nil {
			t.Error(err)
		}
	})
}
