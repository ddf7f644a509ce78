package broker

import (
	"encoding/json"
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"pinwheel/internal/testwait"
)

// lend writes a message with descriptors.
func lend(t *testing.T, c *conn, m *message, fds ...int) {
	t.Helper()
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.WriteMsgUnix(b, unix.UnixRights(fds...), nil); err != nil {
		t.Fatal(err)
	}
}

// An exporter that has as many descriptors as it may loses the connection of one importer, and not its name.
func TestConnectionThatIsLostCostsNothingElse(t *testing.T) {
	testwait.Bound(t)
	broker, process := pair(t)
	r := &Registration{process, Exporter{}}
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(ends[0])
	defer unix.Close(ends[1])
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	m := &message{Kind: connect, From: &Origin{UID: me()}}
	lend(t, broker, m, ends[0], ends[0], ends[1]) // more than there is room for: MSG_CTRUNC, as without a free descriptor
	lend(t, broker, m)                            // and none
	lend(t, broker, m, int(file.Fd()))            // net.FileConn fails, as without a free descriptor
	lend(t, broker, m, ends[0])
	for range 3 {
		if c, err := r.Accept(); !errors.Is(err, ErrLost) {
			t.Errorf("%v, %v", c, err)
		}
	}
	c, err := r.Accept()
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	broker.Close()
	if c, err := r.Accept(); err == nil || errors.Is(err, ErrLost) {
		t.Errorf("after the end of the broker: %v, %v", c, err)
	}
}
