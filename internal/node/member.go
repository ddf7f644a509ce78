package node

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sync"
	"time"

	"go.uber.org/atomic"
	"golang.org/x/sys/unix"

	"pinwheel/mem"
)

// Options say who joins.
type Options struct {
	Job     string // names the segment; settings.Job makes one
	Rank    int    // in MPI_COMM_WORLD; -1 if it isn't known
	Program string // "": the name of the executable

	// BudgetBytes bounds what all members of the job pin together; 0 and mem.Unlimited stand for
	// no bound. Members that join with different bounds don't share.
	BudgetBytes int64
	// Ranks is how many ranks of the job are on this node, as the launcher says. The budget is
	// divided equally among them to begin with. 0 stands for 1.
	Ranks int64

	// Warn is called at most once, if the segment turns out to hold nonsense: from then on the
	// member goes on alone. nil: ignored.
	Warn func(error)
}

func (o *Options) ensureDefaults() {
	if o.BudgetBytes == mem.Unlimited {
		o.BudgetBytes = 0
	}
	o.Ranks = max(o.Ranks, 1)
	o.Rank = min(max(o.Rank, -1), maxRank)
	if o.Program == "" {
		if path, err := os.Readlink("/proc/self/exe"); err == nil {
			o.Program = filepath.Base(path)
		}
	}
	if o.Warn == nil {
		o.Warn = func(error) {}
	}
}

// Member is a process as one of those of its job on this node. Safe for concurrent use.
type Member struct {
	opt  Options
	self Owner

	refusedNs atomic.Uint64 // when Await failed last

	// mu protects all below, and orders the threads of this process. The main lock of the segment is
	// taken inside it, and nothing else.
	mu      sync.Mutex
	seg     *segment // nil once closed
	beacon  int      // socket
	index   int      // of the slot
	slot    memory
	ranks   int64             // by which the budget is divided, as the header must say
	granted int64             // what the slot must say
	recent  [remembered]int64 // the most that was pinned before each of the last calls of Settle
	settled int
	lost    error // why the segment is not used any more
}

// Errors of members.
var (
	// ErrClosed means that the member has left.
	ErrClosed = errors.New("node: the member has left")
	// ErrCorrupt means that the segment holds what no member writes. The member goes on without it.
	ErrCorrupt = errors.New("node: the memory that the processes of the job share holds nonsense")
	// ErrFull means that the segment has no slot left.
	ErrFull = errors.New("node: too many processes of the job")
	// ErrBudget means that other members have another budget.
	ErrBudget = errors.New("node: other processes of the job have another budget")
)

// Join makes this process a member of a job. It finds the segment of the job or makes it. It
// fails, after ten seconds at most, if that can't be done; the caller then has its equal part of
// the budget, o.Part.
func Join(o Options) (*Member, error) {
	o.ensureDefaults()
	if err := checkJob(o.Job); err != nil {
		return nil, err
	}
	self, err := newOwner()
	if err != nil {
		return nil, fmt.Errorf("node: start time of this process: %w", err)
	}
	door, err := openDoor(o.Job)
	if err != nil {
		return nil, err
	}
	defer unix.Close(door)
	s, err := findSegment(o.Job, true)
	// The kernel lists sockets in pieces. A name may be missing if others go away meanwhile.
	for i := 0; i < 3 && errors.Is(err, ErrNone); i++ {
		s, err = findSegment(o.Job, true)
	}
	if errors.Is(err, ErrNone) {
		s, err = createSegment()
	}
	if err != nil {
		return nil, err
	}
	m := &Member{opt: o, self: self, seg: s, beacon: -1}
	if err = m.enter(); err == nil {
		m.beacon, err = bind(beacon{o.Job, int(self.PID), s.fd, s.inode}.name())
	}
	if err != nil {
		_ = m.Close()
		return nil, err
	}
	return m, nil
}

// Part is the equal share of a rank: what a process may pin that can't join.
func (o Options) Part() int64 {
	if o.BudgetBytes <= 0 || o.BudgetBytes == mem.Unlimited {
		return mem.Unlimited
	}
	return o.BudgetBytes / max(o.Ranks, 1)
}

// enter takes a slot and the first share.
func (m *Member) enter() error {
	if err := m.seg.lock(mainLock, patience, minLockPause); err != nil {
		return err
	}
	defer m.seg.unlock(mainLock)
	if err := m.seg.check(); err != nil {
		return err
	}
	if !m.takeSlot() {
		m.seg.reap()
		if !m.takeSlot() {
			return ErrFull
		}
	}
	if m.opt.BudgetBytes <= 0 {
		return nil
	}
	return m.takePart()
}

func (m *Member) takeSlot() bool {
	for i := range slots {
		slot := m.seg.mem.slot(i)
		if slot.load(slotState) != slotFree {
			continue
		}
		if ok, err := m.seg.tryLock(slotLock(i)); err != nil || !ok {
			continue // a child of the former owner still has its description
		}
		for w := range slotWords {
			slot.store(w, 0)
		}
		slot.store(slotPID, uint64(uint32(m.self.PID))|uint64(m.self.Instance)<<32)
		slot.store(slotStart, m.self.Start)
		slot.store(slotRank, uint64(int64(m.opt.Rank)))
		slot.store(slotCeiling, math.MaxInt64)
		publish(slot, &State{Program: m.opt.Program, Helper: Helper{CPU: -1}})
		if high := m.seg.mem.load(headerHigh); uint64(i) >= high {
			m.seg.mem.store(headerHigh, uint64(i)+1)
		}
		slot.store(slotState, slotLive) // from now on it counts
		m.index, m.slot = i, slot
		return true
	}
	return false
}

// Publish replaces the state that others see. PID, Rank, StartNs, AtNs, ShareBytes and Program
// are known already and ignored.
func (m *Member) Publish(s State) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.usable() != nil {
		return
	}
	s.Program, s.AtNs = m.opt.Program, NowNs()
	publish(m.slot, &s)
}

// members returns the states of the living.
func (s *segment) members() (all []State) {
	budget := s.budget()
	for i := range s.high() {
		if slot := s.mem.slot(i); slot.load(slotState) == slotLive && !ownerOf(slot).gone() {
			all = append(all, published(slot, budget))
		}
	}
	return all
}

// high is the number of slots that were ever used.
func (s *segment) high() int { return int(min(s.mem.load(headerHigh), slots)) }

// Close leaves the job and gives the share back, so nothing that counts may be pinned any more.
// Later calls do nothing.
func (m *Member) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.seg == nil {
		return nil
	}
	if m.beacon >= 0 {
		unix.Close(m.beacon)
	}
	if m.slot != nil && m.lost == nil {
		m.slot.store(slotGranted, 0)
		m.slot.store(slotState, slotFree)
	}
	m.seg.close()
	m.seg, m.slot, m.granted = nil, nil, 0
	return nil
}

// usable returns why the segment can't be used, or nil.
func (m *Member) usable() error {
	if m.seg == nil {
		return ErrClosed
	}
	return m.lost
}

// fail notes that the segment holds nonsense, in it for the others, and tells the user.
func (m *Member) fail(err error) {
	if m.lost != nil {
		return
	}
	m.lost = err
	m.seg.mem.store(headerBroken, 1)
	m.opt.Warn(fmt.Errorf("%w; going on without it", err))
}

// locked calls change under the main lock, with a segment that was checked. It fails with
// ErrClosed, ErrCorrupt, and ErrBusy.
func (m *Member) locked(patience time.Duration, change func()) error {
	if err := m.usable(); err != nil {
		return err
	}
	if err := m.seg.lock(mainLock, patience, minLockPause); err != nil {
		return err
	}
	defer m.seg.unlock(mainLock)
	err := m.seg.check()
	if err == nil && m.opt.BudgetBytes > 0 && (m.seg.budget() != m.opt.BudgetBytes || m.seg.ranks() != m.ranks) {
		err = fmt.Errorf("%w: the budget has changed", ErrCorrupt)
	}
	if err == nil &&
		(m.index >= m.seg.high() || ownerOf(m.slot) != m.self || m.slot.load(slotState) != slotLive ||
			m.slot.load(slotGranted) != uint64(m.granted)) {
		err = fmt.Errorf("%w: slot %d belongs to another", ErrCorrupt, m.index)
	}
	if err != nil {
		m.fail(err)
		return err
	}
	change()
	return nil
}

// check returns ErrCorrupt for a segment in which any value that shares depend on is
// impossible. It needs the main lock: else members may join meanwhile.
func (s *segment) check() error {
	bad := func(what string) error { return fmt.Errorf("%w: %s", ErrCorrupt, what) }
	switch {
	case s.mem.load(headerMagic) != magic || s.mem.load(headerLayout) != layout<<32|slots:
		return bad("header")
	case s.mem.load(headerBroken) != 0:
		return bad("another process has found it")
	case s.mem.load(headerHigh) > slots:
		return bad("number of slots")
	}
	budget, ranks := s.mem.load(headerBudget), s.mem.load(headerRanks)
	if budget > math.MaxInt64 || budget > 0 && (ranks < 1 || ranks > math.MaxInt32) {
		return bad("budget")
	}
	var sum int64
	capacity := s.capacity()
	for i := range s.high() {
		slot := s.mem.slot(i)
		switch slot.load(slotState) {
		case slotFree:
			continue
		case slotLive:
		default:
			return bad(fmt.Sprintf("state of slot %d", i))
		}
		granted := slot.load(slotGranted)
		if granted > uint64(capacity-sum) {
			return bad("shares beyond the budget")
		}
		sum += int64(granted)
	}
	return nil
}

// NowNs is the time since boot in nanoseconds, the same for all processes.
func NowNs() int64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts) // since Linux 2.6.39
	return ts.Nano()
}
