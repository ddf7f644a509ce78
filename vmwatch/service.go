package vmwatch

import (
	"cmp"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
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
}

// EnsureDefaults replaces empty fields by the defaults.
func (o *ServiceOptions) EnsureDefaults() {
	if o.Mechanism == "" || o.Mechanism == "auto" {
		o.Mechanism = "bpf"
	}
	o.PerUser = cmp.Or(o.PerUser, 256)
	o.Total = cmp.Or(o.Total, MaxLogs)
}

// MaxLogs is how many processes a set of programs can watch.
const MaxLogs = 1024

// Service watches processes of all users of a node for them, with programs that it has loaded and tested once: what dreg's
// kernel module was to its cluster. A process shows its own page table, as an open /proc/self/pagemap, and gets a log of its
// own and the links that keep the programs attached. So nothing that it relies on ends with the service. Package
// watchd is its socket.
//
// All methods are safe for concurrent use.
type Service struct {
	opt       ServiceOptions
	mechanism Mechanism
	programs  *bpfNotifier
	source    *source
	pagemap   uint64 // the operations of an open pagemap, as inspectFile tells

	// mu orders uses of programs.captured, too. No lock is taken inside it.
	mu    sync.Mutex
	users map[uint32]*tenant
	total int // seats of all users
}

// tenant is what a user has of the service.
type tenant struct {
	seats int
	kept  []int // logs of seats whose processes have ended, but somebody has them mapped still
}

// OpenService loads the programs of the first mechanism that passes its self-test. It needs CAP_BPF and CAP_PERFMON, and
// tracefs if it can't have fentry.
func OpenService(o ServiceOptions) (*Service, error) {
	o.EnsureDefaults()
	s := &Service{opt: o, users: map[uint32]*tenant{}}
	if o.PerUser < 1 || o.Total < 1 || o.Total > MaxLogs {
		return nil, fmt.Errorf("watch service: %d processes of a user and %d of all: want 1 to %d", o.PerUser, o.Total, MaxLogs)
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
	if s.source == nil && len(errs) == 0 {
		return nil, fmt.Errorf("watch service: mechanism %q is none of auto, bpf, fentry, tps, tp", o.Mechanism)
	}
	if s.source == nil {
		return nil, fmt.Errorf("watch service: %w: %w", ErrUnavailable, errors.Join(errs...))
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

// Close ends the service; processes that it has lent a log go on. No other method may run or be called any more.
func (s *Service) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.users {
		closeAll(t.kept)
	}
	return s.source.close()
}

// Seat is room for one process of a user. One goroutine uses it.
type Seat struct {
	service *Service
	uid     uint32
	log     int // -1: none
	space   uint64
	control *bpfControl // of log
}

// Admit takes room for one more process of a user. It fails if the user has as many as a user may have, or all together.
func (s *Service) Admit(uid uint32) (*Seat, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.users[uid]; s.total >= s.opt.Total || t != nil && t.seats >= s.opt.PerUser {
		s.reclaim()
	}
	t := s.users[uid]
	if t == nil {
		t = &tenant{}
	}
	if t.seats >= s.opt.PerUser {
		return nil, fmt.Errorf("user %d has %d processes that are watched, as many as a user may have", uid, t.seats)
	}
	if s.total >= s.opt.Total {
		return nil, fmt.Errorf("%d processes are watched, as many as may be", s.total)
	}
	s.users[uid] = t
	t.seats++
	s.total++
	return &Seat{service: s, uid: uid, log: -1}, nil
}

// Lend gives a log to the process of which pagemap is an open page table, and returns the descriptors that the process
// needs; they stay the Service's. It fails for a process that has a log, and for any other file.
func (t *Seat) Lend(pagemap int) (descriptors []int, err error) {
	s := t.service
	found, err := s.inspect(pagemap)
	switch {
	case err != nil:
		return nil, err
	case found.operations != s.pagemap || found.space == 0:
		return nil, errors.New("what it shows is no page table")
	}
	if t.log, err = newLog(); err != nil {
		return nil, err
	}
	if t.control, err = mapShared[bpfControl](t.log); err != nil {
		return nil, err
	}
	if err := addLog(s.programs.logs, found.space, t.log); errors.Is(err, unix.EEXIST) {
		return nil, errors.New("the process is watched already")
	} else if err != nil {
		return nil, err
	}
	t.space = found.space
	descriptors = append(descriptors, t.log)
	for _, l := range s.programs.links {
		descriptors = append(descriptors, l.(interface{ FD() int }).FD())
	}
	return descriptors, nil
}

// End gives the seat back, for a process that has ended or does not want its log any more. That is blind from now on: a
// process that has closed its connection, but has not ended, must not believe that nothing has changed since. A log that
// somebody has mapped still, as a child of the process, takes the seat until that ends.
func (t *Seat) End() {
	if t.space != 0 {
		atomic.StoreUint64(&t.control.blind, 1)
		atomic.AddUint64(&t.control.head, 1)
		_ = deleteLog(t.service.programs.logs, t.space)
	}
	t.Release()
}

// Release ends the service's part in the seat, and leaves the log as it is: for a service that ends.
func (t *Seat) Release() {
	if t.control != nil {
		unmapShared(t.control)
	}
	s := t.service
	s.mu.Lock()
	defer s.mu.Unlock()
	user := s.users[t.uid]
	if t.log >= 0 {
		user.kept = append(user.kept, t.log)
	} else {
		user.seats--
		s.total--
	}
	s.reclaim()
}

// Reclaim frees the seats of logs that nobody has any more.
func (s *Service) Reclaim() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reclaim()
}

// reclaim is Reclaim with s.mu held.
func (s *Service) reclaim() {
	for uid, t := range s.users {
		still := t.kept[:0]
		for _, log := range t.kept {
			if found, err := inspectFile(s.programs.inspect, s.programs.captured, log); err != nil || found.holders != 1 {
				still = append(still, log)
				continue
			}
			unix.Close(log)
			t.seats--
			s.total--
		}
		if t.kept = still; t.seats == 0 {
			delete(s.users, uid)
		}
	}
}

func (s *Service) inspect(file int) (inspected, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return inspectFile(s.programs.inspect, s.programs.captured, file)
}

// closeAll closes descriptors.
func closeAll(fds []int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
}

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
