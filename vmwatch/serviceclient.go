package vmwatch

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"pinwheel/internal/change"
)

// ServiceRequest is what a process says to the service, with the descriptor of its page table. The answer is the mechanism,
// as one byte with the descriptors of Lend, or None and why not. It differs where the two would not understand
// each other's log.
var ServiceRequest = "pinwheel watch 1 " + strconv.Itoa(int(unsafe.Sizeof(bpfShared{})))

// serviceNotifier is a log that the watch service of the node has lent.
type serviceNotifier struct {
	bpfLog
	conn  int         // while it is open, the service writes the log
	links []io.Closer // these keep the programs attached, also if the service ends
}

func (n *serviceNotifier) close() error {
	errs := []error{unix.Close(n.conn)}
	replaceByZeros(n.shared, n)
	for _, l := range n.links {
		errs = append(errs, l.Close())
	}
	return errors.Join(errs...)
}

// errNoService says that there is no watch service.
var errNoService = errors.New("no watch service")

// ServicePatience is how long the service and a process wait for each other.
const ServicePatience = 2 * time.Second

// service is the watch service of the node as one Open meets it: it is asked once.
type service struct {
	path string
	once bool
	lent *serviceNotifier // nil: none, or it is used
	by   Mechanism
	err  error
}

// watchBy returns a tested source of the service if it watches by m.
func (s *service) watchBy(m Mechanism) (*source, error) {
	if s.path == "" || s.path == "off" {
		return nil, errNoService
	}
	if !s.once {
		s.once = true
		s.lent, s.by, s.err = borrow(s.path)
	}
	if s.err != nil {
		return nil, s.err
	}
	if s.by != m || s.lent == nil {
		return nil, errNoService
	}
	src := &source{mechanism: m, service: true}
	if err := src.openPages(); err != nil {
		return nil, err
	}
	src.note, s.lent = s.lent, nil
	src, err := src.testedFor(change.Kinds[:2])
	if err != nil {
		return nil, fmt.Errorf("watch service at %s: %w", s.path, err)
	}
	return src, nil
}

// close gives back what was not used.
func (s *service) close() {
	if s.lent != nil {
		_ = s.lent.close()
	}
}

// borrow asks the service at path for a log. It waits for twice ServicePatience at most.
func borrow(path string) (_ *serviceNotifier, _ Mechanism, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("watch service at %s: %w", path, err)
		}
	}()
	conn, err := dialService(path)
	if err != nil {
		return nil, None, err
	}
	n := &serviceNotifier{conn: conn}
	defer func() {
		if err != nil {
			_ = n.close()
		}
	}()
	pages, err := openPages()
	if err != nil {
		return nil, None, err
	}
	defer pages.close()
	// A service that has refused already has said why, and does not read this.
	if err := sendTo(n.conn, ServiceRequest, int(pages.pagemap.Fd())); err != nil && !errors.Is(err, unix.EPIPE) {
		return nil, None, err
	}
	m, fds, err := answerOf(n.conn)
	if err != nil {
		return nil, None, err
	}
	for _, fd := range fds[1:] {
		n.links = append(n.links, descriptor(fd))
	}
	n.links = linger(n.links)
	n.bpfLog, err = mapLog(fds[0])
	unix.Close(fds[0])
	return n, m, err
}

// dialService connects to a socket. Where nobody listens, it fails with errNoService.
func dialService(path string) (fd int, err error) {
	if fd, err = unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0); err != nil {
		return -1, err
	}
	patience := unix.NsecToTimeval(int64(ServicePatience))
	err = errors.Join(unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &patience),
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &patience))
	if err == nil {
		err = again(func() error { return unix.Connect(fd, &unix.SockaddrUnix{Name: path}) })
	}
	switch {
	case err == nil:
		return fd, nil
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ECONNREFUSED):
		err = errNoService
	}
	unix.Close(fd)
	return -1, err
}

// again calls f until no signal interrupts it, for as long as the service is waited for.
func again(f func() error) error {
	for end := time.Now().Add(ServicePatience); ; {
		if err := f(); !errors.Is(err, unix.EINTR) || time.Now().After(end) {
			return err
		}
	}
}

func sendTo(conn int, text string, file int) error {
	return again(func() error { return unix.Sendmsg(conn, []byte(text), unix.UnixRights(file), nil, unix.MSG_NOSIGNAL) })
}

// answerOf receives the answer of the service: what it watches by, the log, and the links.
func answerOf(conn int) (m Mechanism, fds []int, err error) {
	answer := make([]byte, 256)
	oob := make([]byte, unix.CmsgSpace(4*64))
	var n, oobn int
	receive := func() (err error) {
		n, oobn, _, _, err = unix.Recvmsg(conn, answer, oob, unix.MSG_CMSG_CLOEXEC)
		return err
	}
	if err = again(receive); errors.Is(err, unix.ECONNRESET) { // it has not read the request; its answer is next
		err = again(receive)
	}
	if errors.Is(err, unix.EAGAIN) {
		err = fmt.Errorf("no answer in %v", ServicePatience)
	}
	if err != nil {
		return None, nil, err
	}
	fds = descriptors(oob[:oobn])
	if n > 0 {
		m = Mechanism(answer[0])
	}
	if m < TP || m > Fentry || len(fds) < 2 {
		closeAll(fds)
		return None, nil, fmt.Errorf("it does not serve this process: %s", answer[min(n, 1):n])
	}
	return m, fds, nil
}

// descriptors returns those in the control messages that came with an answer.
func descriptors(oob []byte) (fds []int) {
	messages, _ := unix.ParseSocketControlMessage(oob) // without one, there are none
	for i := range messages {
		rights, _ := unix.ParseUnixRights(&messages[i])
		fds = append(fds, rights...)
	}
	return fds
}
