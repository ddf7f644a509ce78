package vmwatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"pinwheel/internal/unixsocket"
)

// ServicePath is where the watch service of a node listens if nobody says otherwise.
const ServicePath = "/run/pinwheel/watch.sock"

// ServiceOptions configure OpenService.
type ServiceOptions struct {
	// Mechanism is auto, bpf, fentry, tps or tp. Empty means auto, which is bpf: only BPF programs see other processes.
	Mechanism string
	// PerUser and Total are the most processes, of one user and of all, that are served at a time. 0 means 256, and 1024.
	// Each takes a log of 385 KiB of kernel memory.
	PerUser, Total int
	// Warn, if not nil, hears of what goes wrong, once a second at most. Any goroutine may call it.
	Warn func(string)
}

// EnsureDefaults replaces empty fields by the defaults.
func (o *ServiceOptions) EnsureDefaults() {
	if o.Mechanism == "" || o.Mechanism == "auto" {
		o.Mechanism = "bpf"
	}
	o.PerUser = cmp.Or(o.PerUser, 256)
	o.Total = cmp.Or(o.Total, maxLogs)
	if o.Warn == nil {
		o.Warn = func(string) {}
	}
}

// maxLogs is how many logs the BPF programs find.
const maxLogs = 1024

// Service watches processes of all users of a node for them, with programs that it has loaded and tested once: what dreg's
// kernel module was to its cluster. A process that connects to its socket shows its own page table, as an open
// /proc/self/pagemap, and gets a log of its own and the links that keep the programs attached. So nothing that it
// relies on ends with the service.
type Service struct {
	opt       ServiceOptions
	mechanism Mechanism
	programs  *bpfNotifier
	source    *source
	pagemap   uint64       // the operations of an open pagemap, as inspectFile tells
	saidNs    atomic.Int64 // when something was said last

	// mu orders uses of programs.captured, too. No lock is taken inside it.
	mu    sync.Mutex
	users map[uint32]*tenant
	total int // logs and connections of all users
}

// tenant is what a user has of the service.
type tenant struct {
	taken int   // connections, and logs
	kept  []int // of these, logs without a connection that somebody has mapped still
}

// OpenService loads the programs of the first mechanism that passes its self-test. It needs CAP_BPF and CAP_PERFMON, and
// tracefs if it can't have fentry.
func OpenService(o ServiceOptions) (*Service, error) {
	o.EnsureDefaults()
	s := &Service{opt: o, users: map[uint32]*tenant{}}
	if o.PerUser < 1 || o.Total < 1 || o.Total > maxLogs {
		return nil, fmt.Errorf("watch service: %d processes of a user and %d of all: want 1 to %d", o.PerUser, o.Total, maxLogs)
	}
	if err := checkFiles(o.Total); err != nil {
		return nil, err
	}
	var errs []error
	for _, m := range choices[o.Mechanism] {
		if m < TP {
			continue // it sees only its own process
		}
		src, err := loadAndTest(m)
		if err == nil {
			s.mechanism, s.source, s.programs = m, src, src.note.(*bpfNotifier)
			break
		}
		errs = append(errs, fmt.Errorf("%v: %w", m, err))
	}
	if s.source == nil {
		return nil, fmt.Errorf("watch service: %w (of %q): %w", ErrUnavailable, o.Mechanism, errors.Join(errs...))
	}
	own, err := s.inspect(int(s.source.pages.pagemap.Fd()))
	if err != nil {
		return nil, errors.Join(err, s.source.close())
	}
	s.pagemap = own.operations
	s.programs.leave() // it may want a log from a service, as every process
	return s, nil
}

// Mechanism returns what the service watches by.
func (s *Service) Mechanism() Mechanism { return s.mechanism }

// Close ends the service; those whom it has served go on. Serve must have returned.
func (s *Service) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.users {
		closeAll(t.kept)
	}
	return s.source.close()
}

// acceptPause is between two attempts to accept a connection for which there was no descriptor or no memory.
const acceptPause = 100 * time.Millisecond

// reclaimEvery is how often the service asks whether logs of ended processes are free by now.
const reclaimEvery = time.Minute

// Serve serves processes that connect to l, a socket of packets, until ctx ends. It closes l.
func (s *Service) Serve(ctx context.Context, l *unixsocket.Listener) error {
	var all sync.WaitGroup
	defer all.Wait()
	defer context.AfterFunc(ctx, func() { l.Close() })()
	clock := time.NewTicker(reclaimEvery)
	defer clock.Stop()
	all.Go(func() { s.reclaimAll(ctx, clock.C) })
	for {
		c, err := l.AcceptUnix()
		switch {
		case err == nil:
			all.Go(func() {
				defer context.AfterFunc(ctx, func() { _ = c.SetReadDeadline(time.Unix(1, 0)) })()
				s.serve(ctx, c)
			})
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		default: // a process that is gone, or a shortage that may pass
			s.warn("accept: %v", err)
			time.Sleep(acceptPause)
		}
	}
}

func (s *Service) reclaimAll(ctx context.Context, clock <-chan time.Time) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-clock:
			s.mu.Lock()
			s.reclaim()
			s.mu.Unlock()
		}
	}
}

func (s *Service) warn(format string, a ...any) {
	now := time.Now().UnixNano()
	if last := s.saidNs.Load(); now-last >= int64(time.Second) && s.saidNs.CompareAndSwap(last, now) {
		s.opt.Warn(fmt.Sprintf(format, a...))
	}
}

// serve serves one process.
func (s *Service) serve(ctx context.Context, c *net.UnixConn) {
	defer c.Close()
	who, err := unixsocket.Peer(c)
	if err != nil {
		s.warn("%v", err)
		return
	}
	log := -1
	if err = s.admit(who.Uid); err == nil {
		log, err = s.lend(ctx, c)
		defer s.leave(who.Uid, log)
	}
	if err != nil && !errors.Is(err, io.EOF) { // else it has only looked whether there is a service
		s.warn("a process of user %d is not served: %v", who.Uid, err)
		_ = c.SetWriteDeadline(time.Now().Add(servicePatience))
		_, _ = c.Write(append([]byte{byte(None)}, err.Error()...))
	}
}

// admit takes room for one more process of a user.
func (s *Service) admit(uid uint32) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.users[uid]
	if t == nil {
		t = &tenant{}
	}
	if t.taken >= s.opt.PerUser || s.total >= s.opt.Total {
		s.reclaim()
	}
	if t.taken >= s.opt.PerUser {
		return fmt.Errorf("user %d has %d processes that are watched, as many as a user may have", uid, t.taken)
	}
	if s.total >= s.opt.Total {
		return fmt.Errorf("%d processes are watched, as many as may be", s.total)
	}
	s.users[uid] = t
	t.taken++
	s.total++
	return nil
}

// leave gives back what admit took, unless somebody has the log mapped: a child of the process, after fork.
func (s *Service) leave(uid uint32, log int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.users[uid]
	if log >= 0 {
		t.kept = append(t.kept, log)
	} else {
		t.taken--
		s.total--
	}
	s.reclaim()
}

// reclaim ends logs that nobody else has. s.mu is held.
func (s *Service) reclaim() {
	for uid, t := range s.users {
		still := t.kept[:0]
		for _, log := range t.kept {
			if found, err := inspectFile(s.programs.inspect, s.programs.captured, log); err != nil || found.holders != 1 {
				still = append(still, log)
				continue
			}
			unix.Close(log)
			t.taken--
			s.total--
		}
		if t.kept = still; t.taken == 0 {
			delete(s.users, uid)
		}
	}
}

func (s *Service) inspect(file int) (inspected, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return inspectFile(s.programs.inspect, s.programs.captured, file)
}

// lend gives a process a log, and returns that when the connection has ended; -1 if it has none. Until then changes are
// written to it. Then it is blind: a process that has closed the connection, but not its end, must not believe that
// nothing has changed since.
func (s *Service) lend(ctx context.Context, c *net.UnixConn) (log int, err error) {
	_ = c.SetDeadline(time.Now().Add(servicePatience))
	space, err := s.receive(c)
	if err != nil {
		return -1, err
	}
	if log, err = newLog(); err != nil {
		return -1, err
	}
	control, err := mapShared[bpfControl](log)
	if err != nil {
		unix.Close(log)
		return -1, err
	}
	defer unmapShared(control)
	if err := addLog(s.programs.logs, space, log); err != nil {
		if errors.Is(err, unix.EEXIST) {
			err = errors.New("the process is watched already")
		}
		return log, err
	}
	defer s.forget(ctx, space, control)
	fds := []int{log}
	for _, l := range s.programs.links {
		fds = append(fds, l.(interface{ FD() int }).FD())
	}
	if _, _, err = c.WriteMsgUnix([]byte{byte(s.mechanism)}, unix.UnixRights(fds...), nil); err != nil {
		return log, nil // it is gone
	}
	_ = c.SetDeadline(time.Time{})
	if ctx.Err() == nil {
		_, _ = c.Read(make([]byte, 1)) // its end, or anything that it says
	}
	return log, nil
}

// forget ends a log, unless it is the service that ends.
func (s *Service) forget(ctx context.Context, space uint64, control *bpfControl) {
	if ctx.Err() != nil {
		return
	}
	atomic.StoreUint64(&control.blind, 1)
	atomic.AddUint64(&control.head, 1)
	_ = deleteLog(s.programs.logs, space)
}

// receive takes the request of a process, and returns its address space.
func (s *Service) receive(c *net.UnixConn) (space uint64, err error) {
	request := make([]byte, len(serviceRequest)+1)
	oob := make([]byte, unix.CmsgSpace(4))
	n, oobn, _, _, err := c.ReadMsgUnix(request, oob)
	file := unixsocket.Descriptor(oob[:max(oobn, 0)])
	if file >= 0 {
		defer unix.Close(file)
	}
	switch {
	case err != nil:
		return 0, err
	case string(request[:n]) != serviceRequest:
		return 0, fmt.Errorf("it speaks another protocol than this service (%.40q): use the same version of Pinwheel", request[:n])
	case file < 0:
		return 0, errors.New("it shows no page table")
	}
	found, err := s.inspect(file)
	if err == nil && (found.operations != s.pagemap || found.space == 0) {
		err = errors.New("what it shows is no page table")
	}
	return found.space, err
}

// closeAll closes descriptors.
func closeAll(fds []int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
}

// servicePatience bounds how long one end waits for the other before a process is served.
const servicePatience = 2 * time.Second

// checkFiles fails if this process may not open as many files as the service needs: two for each process, and its own.
func checkFiles(total int) error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("watch service: getrlimit: %w", err)
	}
	if want := uint64(2*total + 64); limit.Cur < want {
		return fmt.Errorf("watch service: %d processes take %d open files, and %d are allowed: raise the limit (ulimit -n), or serve fewer",
			total, want, limit.Cur)
	}
	return nil
}
