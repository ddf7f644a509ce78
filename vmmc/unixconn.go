package vmmc

import (
	"fmt"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"pinwheel/vmmc/internal/protocol"
)

// maxFiles is how many descriptors may have come whose frames have not.
const maxFiles = 16

// unixConn is a Unix socket that keeps the descriptors that come with the bytes. Only the one goroutine
// that reads uses them.
type unixConn struct {
	*net.UnixConn
	files []*os.File
	oob   [64]byte // bytes: room for more descriptors than a node sends at once
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
		for _, fd := range fds {
			c.files = append(c.files, os.NewFile(uintptr(fd), "export"))
		}
	}
	if len(c.files) > maxFiles {
		c.closeFiles()
		return fmt.Errorf("%w: more than %d descriptors", protocol.ErrProtocol, maxFiles)
	}
	return nil
}

// takeFile returns the descriptor of the frame that was read last, or nil.
func (c *unixConn) takeFile() (f *os.File) {
	if len(c.files) > 0 {
		f, c.files = c.files[0], c.files[1:]
	}
	return f
}

func (c *unixConn) closeFiles() {
	for _, f := range c.files {
		f.Close()
	}
	c.files = nil
}
