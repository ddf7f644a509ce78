package vmmc

import (
	"fmt"
	"io"
	"net"

	"golang.org/x/sys/unix"

	"pinwheel/comm/vmmc/internal/protocol"
)

// maxFiles is how many descriptors may have come whose frames have not.
const maxFiles = 16

// unixConn is a Unix socket that keeps the descriptors that come with the bytes. Only the one goroutine
// that reads uses them.
type unixConn struct {
	*net.UnixConn
	fds []int
	oob [64]byte // bytes: room for more descriptors than a node sends at once
}

// Read reads bytes. The kernel gives a descriptor no later than the first byte that it was sent with, and
// sets close-on-exec as Go asks it to (recvmsg(2), MSG_CMSG_CLOEXEC).
func (c *unixConn) Read(b []byte) (int, error) {
	n, oobn, _, _, err := c.ReadMsgUnix(b, c.oob[:])
	if oobn > 0 {
		if err := c.keep(c.oob[:oobn]); err != nil {
			return 0, err
		}
	}
	if n == 0 && err == nil && len(b) > 0 {
		err = io.EOF
	}
	return max(n, 0), err // it is -1 with an error
}

func (c *unixConn) keep(oob []byte) error {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return err
	}
	for i := range messages {
		fds, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			continue // no descriptors
		}
		c.fds = append(c.fds, fds...)
	}
	if len(c.fds) > maxFiles {
		c.close()
		return fmt.Errorf("%w: more than %d descriptors", protocol.ErrProtocol, maxFiles)
	}
	return nil
}

// take returns the next n descriptors, or none if there are fewer.
func (c *unixConn) take(n int) (fds []int) {
	if len(c.fds) >= n {
		fds, c.fds = c.fds[:n:n], c.fds[n:]
	}
	return fds
}

// close closes the descriptors that nobody took.
func (c *unixConn) close() {
	closeAll(c.fds)
	c.fds = nil
}
