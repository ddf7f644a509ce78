// Package watchd serves vmwatch.Service at a Unix socket, to the processes of all users of a node.
//
// A process sends one packet, vmwatch.ServiceRequest with the descriptor of its page table, and gets one back. While the
// connection lasts, its changes are written to the log that it has got.
package watchd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"pinwheel/internal/unixsocket"
	"pinwheel/vmwatch"
)

const (
	// acceptPause is between two attempts to accept a connection for which there was no descriptor or no memory.
	acceptPause = 100 * time.Millisecond
	// reclaimEvery is how often the service asks whether logs of ended processes are free by now.
	reclaimEvery = time.Minute
	// warnEvery is the least time between two warnings: anybody can cause them.
	warnEvery = time.Second
)

type server struct {
	service *vmwatch.Service
	warn    func(string)

	mu   sync.Mutex
	said time.Time // when something was said last
}

// Listen makes the socket of a service, to which every user may connect.
func Listen(path string) (*unixsocket.Listener, error) {
	return unixsocket.ListenMode("unixpacket", path, 0o666)
}

// Serve serves processes that connect to l, a socket of packets, until ctx ends. It closes l, and processes that have a log
// go on. warn hears of what goes wrong, once a second at most; any goroutine calls it.
func Serve(ctx context.Context, l *unixsocket.Listener, service *vmwatch.Service, warn func(string)) error {
	s := &server{service: service, warn: warn}
	var all sync.WaitGroup
	defer all.Wait()
	ctx, end := context.WithCancel(ctx)
	defer end()
	defer context.AfterFunc(ctx, func() { l.Close() })()
	all.Go(func() { s.reclaim(ctx) })
	for {
		c, err := l.AcceptUnix()
		switch {
		case err == nil:
			all.Go(func() {
				defer c.Close()
				defer context.AfterFunc(ctx, func() { _ = c.SetReadDeadline(time.Unix(1, 0)) })()
				s.serve(ctx, c)
			})
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		default: // a process that is gone, or a shortage that may pass
			s.say("accept: %v", err)
			time.Sleep(acceptPause)
		}
	}
}

func (s *server) reclaim(ctx context.Context) {
	clock := time.NewTicker(reclaimEvery)
	defer clock.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-clock.C:
			s.service.Reclaim()
		}
	}
}

func (s *server) say(format string, a ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now(); now.Sub(s.said) >= warnEvery {
		s.said = now
		s.warn(fmt.Sprintf(format, a...))
	}
}

// serve serves one process, and tells one that it does not serve why.
func (s *server) serve(ctx context.Context, c *net.UnixConn) {
	who, err := unixsocket.Peer(c)
	if err != nil {
		s.say("%v", err)
		return
	}
	_ = c.SetDeadline(time.Now().Add(vmwatch.ServicePatience))
	seat, err := s.service.Admit(who.Uid)
	if err == nil {
		if err = s.lend(ctx, c, seat); ctx.Err() == nil {
			seat.End()
		} else {
			seat.Release()
		}
	}
	if err == nil || errors.Is(err, io.EOF) { // it has looked only whether there is a service
		return
	}
	s.say("a process of user %d is not served: %v", who.Uid, err)
	_ = c.SetWriteDeadline(time.Now().Add(vmwatch.ServicePatience))
	_, _ = c.Write(append([]byte{byte(vmwatch.None)}, err.Error()...)) // or it is gone
}

// lend gives a process a log, and waits for the end of its connection.
func (s *server) lend(ctx context.Context, c *net.UnixConn, seat *vmwatch.Seat) error {
	pagemap, err := receive(c)
	if err != nil {
		return err
	}
	descriptors, err := seat.Lend(pagemap)
	unix.Close(pagemap)
	if err != nil {
		return err
	}
	answer := []byte{byte(s.service.Mechanism())}
	if _, _, err := c.WriteMsgUnix(answer, unix.UnixRights(descriptors...), nil); err != nil {
		return nil // it is gone
	}
	_ = c.SetDeadline(time.Time{})
	if ctx.Err() == nil {
		_, _ = c.Read(make([]byte, 1)) // its end, or anything that it says
	}
	return nil
}

// receive takes the request of a process, and returns the page table that it shows, which the caller closes.
func receive(c *net.UnixConn) (pagemap int, err error) {
	request := make([]byte, len(vmwatch.ServiceRequest)+1)
	oob := make([]byte, unix.CmsgSpace(4)) // bytes: the kernel closes what does not fit
	n, oobn, _, _, err := c.ReadMsgUnix(request, oob)
	if err != nil {
		return -1, err
	}
	pagemap = unixsocket.Descriptor(oob[:oobn])
	switch {
	case string(request[:n]) != vmwatch.ServiceRequest:
		err = fmt.Errorf("it speaks another protocol than this service (%.40q): use the same version of Pinwheel", request[:n])
	case pagemap < 0:
		err = errors.New("it shows no page table")
	}
	if err != nil && pagemap >= 0 {
		unix.Close(pagemap)
	}
	return pagemap, err
}
