package broker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"pinwheel/internal/unixsocket"
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

	length int // of the whole message in bytes, as it was received
}

const (
	maxMessage = 16 << 10 // 16 KiB: each client has a buffer of that
	// MaxName is the most bytes of a name.
	MaxName = 255
	// MaxUsers is how many other users an exporter can permit, and how many other nodes.
	MaxUsers = 256
	// maxAddress is the most bytes of an address of an exporter: a name with its user, and its node with the port.
	maxAddress = 1024
	maxReason  = 1024 // bytes
)

// patience is how long anybody waits for a peer that should read or answer at once.
const patience = 3 * time.Second

var errMessage = errors.New("broker: malformed message")

// conn carries messages. One goroutine may receive; any may send. Whoever fills writing may use lent and ended.
type conn struct {
	*net.UnixConn
	writing chan struct{} // full while a message is sent; taken before broker.mu
	lent    bool          // a descriptor was sent
	ended   bool          // nothing is sent any more
	buf     []byte
}

func newConn(c *net.UnixConn) *conn {
	return &conn{UnixConn: c, writing: make(chan struct{}, 1), buf: make([]byte, maxMessage)}
}

// send sends a message, all of it or nothing. The descriptors stay the caller's. It fails with
// os.ErrDeadlineExceeded if the peer reads nothing for too long, and with the error of ctx.
func (c *conn) send(ctx context.Context, m *message, fds ...int) error {
	select {
	case c.writing <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-c.writing }()
	return c.sendLocked(ctx, m, fds...)
}

// sendLocked is send; writing is full.
func (c *conn) sendLocked(ctx context.Context, m *message, fds ...int) error {
	if c.ended {
		return net.ErrClosed
	}
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if len(b) > maxMessage {
		return fmt.Errorf("%w: %d bytes", errMessage, len(b))
	}
	late := time.Now().Add(patience)
	if d, ok := ctx.Deadline(); ok && d.Before(late) {
		late = d
	}
	if err := c.SetWriteDeadline(late); err != nil {
		return err
	}
	var rights []byte
	if len(fds) > 0 {
		rights, c.lent = unix.UnixRights(fds...), true
	}
	_, _, err = c.WriteMsgUnix(b, rights, nil)
	return err
}

// end lets nothing more be sent, and waits until the peer has taken all descriptors or is closed. Until then they count
// as ours: see maxUnread.
func (c *conn) end(ctx context.Context) {
	c.writing <- struct{}{}
	c.ended = true
	lent := c.lent
	<-c.writing
	for pause := time.Millisecond; lent && c.unread() > 0; pause = min(2*pause, time.Second) {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

// unread is how many bytes the peer has not read, by the kernel's own count (SIOCOUTQ, linux/sockios.h). It is 0 once
// the peer is closed.
func (c *conn) unread() (bytes int) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) { bytes, err = unix.IoctlGetInt(int(fd), unix.SIOCOUTQ) })
	if err != nil {
		return 0
	}
	return bytes
}

// receive returns the next message, and the descriptor that came with it, or -1.
func (c *conn) receive() (m message, fd int, err error) {
	oob := make([]byte, unix.CmsgSpace(4)) // bytes: room for one descriptor. The kernel closes those that don't fit
	n, oobn, flags, _, err := c.ReadMsgUnix(c.buf, oob)
	if err != nil {
		return m, -1, err
	}
	fd = unixsocket.Descriptor(oob[:oobn])
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

func decode(b []byte) (m message, err error) {
	if err := json.Unmarshal(b, &m); err != nil {
		return m, fmt.Errorf("%w: %w", errMessage, err)
	}
	m.length = len(b)
	return m, m.check()
}

// check finds what no message may have.
func (m *message) check() error {
	bad := m.Kind == "" || len(m.Name) > MaxName || len(m.Users) > MaxUsers || len(m.Nodes) > MaxUsers ||
		m.Kind == export && m.Export == nil || m.Kind == imported && m.Import == nil ||
		m.Kind == process && m.Process == nil || m.Kind == connect && m.From == nil || m.Kind == done && m.Stats == nil ||
		m.From != nil && len(m.From.Node) > MaxName || m.Import != nil && len(m.Import.Exporter) > maxAddress
	if bad {
		return fmt.Errorf("%w: of kind %q", errMessage, m.Kind)
	}
	return nil
}

// refusal tells a client, or another broker, why there is no other answer.
func refusal(err error) *message {
	reason := err.Error()
	return &message{Kind: refused, Reason: reason[:min(len(reason), maxReason)]}
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
func (s *Stats) tell(ctx context.Context, c *conn, question uint64) error {
	for i := range s.Exports[:min(len(s.Exports), maxListed)] {
		if err := c.send(ctx, &message{Kind: export, Question: question, Export: &s.Exports[i]}); err != nil {
			return err
		}
	}
	for i := range s.Imports[:min(len(s.Imports), maxListed)] {
		if err := c.send(ctx, &message{Kind: imported, Question: question, Import: &s.Imports[i]}); err != nil {
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
