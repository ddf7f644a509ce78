package vmwatch

import (
	"golang.org/x/sys/unix"

	"pinwheel/mem"
)

// What tests of the service need; they import its socket, which imports this package.
const ChildVar = childVar

var (
	Children   = children
	SelfTest   = selfTest
	Scratch    = scratch
	Eventually = eventually
	Entries    = entries
	Need       = need
)

// Left counts what a service has of its clients: users, seats, and entries of the programs' map.
func (s *Service) Left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reclaim()
	n := s.total + len(s.users)
	var space uint64
	for logs := s.programs.coll.Maps["logs"].Iterate(); logs.Next(&space, new(uint32)); {
		n++
	}
	return n
}

// CloseService closes the descriptors that w has of the service, as a program does that closes all.
func (w *Watcher) CloseService() {
	n := w.source.note.(*serviceNotifier)
	unix.Close(n.conn)
	for _, l := range n.links {
		l.Close()
	}
	w.source.pages.close()
}

// Borrowed is what a process has got of a service.
type Borrowed struct {
	Conn, Log int
	Links     []int
}

func (b *Borrowed) Close() { closeAll(append([]int{b.Conn, b.Log}, b.Links...)) }

// Borrow asks for a log as a process does, and keeps what it gets as it is.
func Borrow(path string) (*Borrowed, error) {
	pages, err := openPages()
	if err != nil {
		return nil, err
	}
	defer pages.close()
	conn, err := dialService(path)
	if err != nil {
		return nil, err
	}
	if err = sendTo(conn, ServiceRequest, int(pages.pagemap.Fd())); err != nil {
		return nil, err
	}
	_, fds, err := answerOf(conn)
	if err != nil {
		unix.Close(conn)
		return nil, err
	}
	return &Borrowed{conn, fds[0], fds[1:]}, nil
}

// Refused counts links of which the caller can neither detach nor replace the program.
func (b *Borrowed) Refused() (n int) {
	for _, link := range b.Links {
		detach := struct{ link uint32 }{uint32(link)}
		_, err1 := bpfCall("LINK_DETACH", unix.BPF_LINK_DETACH, &detach)
		update := struct{ link, program, flags, old uint32 }{link: uint32(link), program: uint32(link)}
		_, err2 := bpfCall("LINK_UPDATE", unix.BPF_LINK_UPDATE, &update)
		if err1 != nil && err2 != nil {
			n++
		}
	}
	return n
}

// Look returns the generation of the log, and whether a look at what has changed since seen misses some.
func (b *Borrowed) Look() (look func(seen uint64) (generation uint64, lost bool), end func(), err error) {
	l, err := mapLog(b.Log)
	return func(seen uint64) (uint64, bool) {
		_, lost := l.drain(seen, func(mem.Range) {})
		return l.first(), lost
	}, func() { unmapShared(l.shared) }, err
}
