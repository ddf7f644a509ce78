package broker

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// kind says what a message asks for or tells.
type kind string

const (
	register  kind = "register"
	dial      kind = "dial"
	list      kind = "list"
	connect   kind = "connect"   // From is the importer
	connected kind = "connected" // or registered
	refused   kind = "refused"   // for Reason
	describe  kind = "describe"
	process   kind = "process"
	export    kind = "export"
	imported  kind = "import"
	done      kind = "done" // the last of several. Stats has what is no list
)

// message is one message. Which fields it has depends on its Kind.
type message struct {
	Kind  kind     `json:"kind"`
	Name  string   `json:"name,omitempty"`
	UID   uint32   `json:"uid,omitempty"`
	Users []uint32 `json:"users,omitempty"`
	Nodes []string `json:"nodes,omitempty"`
	From  *Origin  `json:"from,omitempty"`
	Host  string   `json:"host,omitempty"` // HOST:PORT of the broker of another node. Empty: this one
	// Ticket and Secret are those of a connection to another node.
	Ticket string `json:"ticket,omitempty"`
	Secret string `json:"secret,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Question numbers describe, and what answers it.
	Question uint64       `json:"question,omitempty"`
	Process  *Process     `json:"process,omitempty"`
	Export   *ExportStats `json:"export,omitempty"`
	Import   *ImportStats `json:"import,omitempty"`
	Stats    *Stats       `json:"stats,omitempty"`
}

const (
	maxMessage = 16 << 10 // 16 KiB: each client has a buffer of that
	// MaxName is the most bytes of a name.
	MaxName = 255
	// MaxUsers is how many other users an exporter can permit, and how many other nodes.
	MaxUsers = 256
)

// patience is how long anybody waits for a peer that should read or answer at once.
const patience = 3 * time.Second

var errMessage = errors.New("broker: malformed message")

// conn carries messages. One goroutine may receive; any may send.
type conn struct {
	*net.UnixConn
	writing sync.Mutex // taken before broker.mu
	buf     []byte
}

func newConn(c *net.UnixConn) *conn { return &conn{UnixConn: c, buf: make([]byte, maxMessage)} }

// send sends a message. The descriptors stay the caller's.
func (c *conn) send(m *message, fds ...int) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	return c.sendLocked(m, fds...)
}

// sendLocked is send; writing is held.
func (c *conn) sendLocked(m *message, fds ...int) error {
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if len(b) > maxMessage {
		return fmt.Errorf("%w: %d bytes", errMessage, len(b))
	}
	if err := c.SetWriteDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	_, _, err = c.WriteMsgUnix(b, rights, nil)
	return err
}

// receive returns the next message, and the descriptor that came with it, or -1.
func (c *conn) receive() (m message, fd int, err error) {
	oob := make([]byte, unix.CmsgSpace(4)) // bytes: room for one descriptor. The kernel closes those that don't fit
	n, oobn, flags, _, err := c.ReadMsgUnix(c.buf, oob)
	if err != nil {
		return m, -1, err
	}
	fd = descriptor(oob[:oobn])
	switch {
	case n == 0:
		err = io.EOF
	case flags&unix.MSG_TRUNC != 0:
		err = fmt.Errorf("%w: too long", errMessage)
	case flags&unix.MSG_CTRUNC != 0:
		err = fmt.Errorf("%w: its descriptor was lost: this process may have as many as it is allowed", errMessage)
	default:
		m, err = decode(c.buf[:n])
	}
	if err != nil && fd >= 0 {
		unix.Close(fd)
		fd = -1
	}
	return m, fd, err
}

func descriptor(oob []byte) int {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil || len(messages) == 0 {
		return -1
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) == 0 {
		return -1
	}
	for _, extra := range fds[1:] {
		unix.Close(extra)
	}
	return fds[0]
}

func decode(b []byte) (m message, err error) {
	if err := json.Unmarshal(b, &m); err != nil {
		return m, fmt.Errorf("%w: %w", errMessage, err)
	}
	bad := m.Kind == "" || len(m.Name) > MaxName || len(m.Users) > MaxUsers || len(m.Nodes) > MaxUsers ||
		m.Kind == export && m.Export == nil || m.Kind == imported && m.Import == nil ||
		m.Kind == process && m.Process == nil || m.Kind == connect && m.From == nil || m.Kind == done && m.Stats == nil
	if bad {
		return m, fmt.Errorf("%w: of kind %q", errMessage, m.Kind)
	}
	return m, nil
}

// add takes a message of a description in, and tells whether it was the last.
func (s *Stats) add(m *message) (last bool, err error) {
	switch {
	case m.Kind == export && len(s.Exports) < maxListed:
		s.Exports = append(s.Exports, *m.Export)
	case m.Kind == imported && len(s.Imports) < maxListed:
		s.Imports = append(s.Imports, *m.Import)
	case m.Kind == done:
		s.Waiting, s.Total, s.PinnedBytes = m.Stats.Waiting, m.Stats.Total, m.Stats.PinnedBytes
		return true, nil
	default:
		return false, fmt.Errorf("%w: %q, or too many", errMessage, m.Kind)
	}
	return false, nil
}

// maxListed is how many exports and imports of a process a list has at most.
const maxListed = 1 << 16

// tell sends a description, but for its done message.
func (s *Stats) tell(c *conn, question uint64) error {
	for i := range s.Exports[:min(len(s.Exports), maxListed)] {
		if err := c.send(&message{Kind: export, Question: question, Export: &s.Exports[i]}); err != nil {
			return err
		}
	}
	for i := range s.Imports[:min(len(s.Imports), maxListed)] {
		if err := c.send(&message{Kind: imported, Question: question, Import: &s.Imports[i]}); err != nil {
			return err
		}
	}
	return nil
}

// rest are the parts of s that its done message has.
func (s *Stats) rest() *Stats {
	return &Stats{Waiting: s.Waiting, Total: s.Total, PinnedBytes: s.PinnedBytes}
}

// stream makes a connection of a descriptor, which it takes over.
func stream(fd int) (net.Conn, error) {
	if fd < 0 {
		return nil, fmt.Errorf("%w: without its descriptor", errMessage)
	}
	f := os.NewFile(uintptr(fd), "vmmc")
	defer f.Close()
	return net.FileConn(f)
}
