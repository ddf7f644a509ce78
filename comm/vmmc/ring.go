package vmmc

import (
	"fmt"
	"os"
	"slices"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"pinwheel/comm/vmmc/internal/protocol"
)

// ring carries the notifications of one import through memory that both processes map. The importer writes
// an entry and then moves the tail past it. The exporter takes what lies before the tail. It never
// overflows: it has an entry for each credit, and a credit comes back after its entry was taken. The bell, an
// eventfd(2), rings only if the exporter sleeps: while notifications come fast there is no system call
// for them. Nor is there for credits: they go back in a word, several at a time. Only an importer that waits for one
// hears of them by a frame.
//
// Each side believes nothing that it finds here: the exporter checks an entry like a frame, and the importer credits.
// The other side has the same bell, and can make it block. So the exporter never reads it. The importer writes to it,
// which an exporter can make wait: that delays what this importer sends to that exporter, and nobody else.
type ring struct {
	data    []byte         // as Mmap returned it
	tail    *atomic.Uint64 // entries that the importer has written. Of sync/atomic: processes share these two
	asleep  *atomic.Uint32 // 1: the exporter wants the bell
	given   *atomic.Uint64 // credits that the exporter has given back, ever
	waits   *atomic.Uint32 // 1: the importer wants a frame with the next of them
	entries []entry
}

// entry is a notification.
type entry struct {
	offset, bytes, tag, _ uint64
}

const (
	asleepAt   = 64 // bytes: a cache line from the tail
	givenAt    = 128
	waitsAt    = 136
	entriesAt  = 192 // bytes
	entryBytes = 32
)

func ringBytes(credits uint64) uint64 { return entriesAt + entryBytes*credits }

// checkBell refuses what is no eventfd: a write to a pipe that nobody reads, say, would block. Where /proc is not
// mounted nothing tells.
func checkBell(fd int) error {
	what, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	if err == nil && what != "anon_inode:[eventfd]" {
		return fmt.Errorf("%w: the bell is %s", protocol.ErrProtocol, what)
	}
	return nil
}

// newRing makes a ring, and the descriptor by which the importer maps it.
func newRing(credits uint64) (r *ring, fd int, err error) {
	fd, err = newMemfd(ringBytes(credits))
	if err != nil {
		return nil, -1, err
	}
	if r, err = mapRing(fd, credits); err != nil {
		unix.Close(fd)
	}
	return r, fd, err
}

// mapRing maps a ring. The caller keeps the descriptor.
func mapRing(fd int, credits uint64) (*ring, error) {
	if credits > 1<<24 {
		return nil, fmt.Errorf("%w: %d credits", protocol.ErrProtocol, credits)
	}
	if err := checkMemory(fd, 0, ringBytes(credits)); err != nil {
		return nil, err
	}
	data, err := unix.Mmap(fd, 0, int(ringBytes(credits)), readWrite, unix.MAP_SHARED)
	if err != nil {
		return nil, os.NewSyscallError("mmap", err)
	}
	keepFromChildren(data)
	return ringIn(data, credits), nil
}

// put adds an entry and tells whether the bell must ring. The importer has a credit for it.
func (r *ring) put(e entry) (bell bool) {
	at := r.tail.Load()
	r.entries[at%uint64(len(r.entries))] = e
	r.tail.Store(at + 1)
	return r.asleep.Swap(0) == 1
}

// take returns the entry after the first head ones, if it is there.
func (r *ring) take(head uint64) (e entry, ok bool, err error) {
	switch ahead := r.tail.Load() - head; {
	case ahead == 0:
		return e, false, nil
	case ahead > uint64(len(r.entries)):
		return e, false, fmt.Errorf("%w: %d notifications in a ring of %d", protocol.ErrProtocol, ahead, len(r.entries))
	}
	return r.entries[head%uint64(len(r.entries))], true, nil
}

// sleep asks for the bell, and tells whether nothing came meanwhile.
func (r *ring) sleep(head uint64) bool {
	r.asleep.Store(1)
	return r.tail.Load() == head
}

// give puts credits into the ring, and tells whether the importer must hear of it. total is all that were ever given.
func (r *ring) give(total uint64) (tell bool) {
	r.given.Store(total)
	return r.waits.Swap(0) == 1
}

// wish asks to hear of the next credits, and tells whether none came meanwhile. taken is all that were ever taken.
func (r *ring) wish(taken uint64) bool {
	r.waits.Store(1)
	return r.given.Load() == taken
}

func (r *ring) unmap() { _ = unix.Munmap(r.data) } // it fails for nothing that we mapped

// ringReader is a ring at the exporter. Node.mu protects it, but for the bell.
type ringReader struct {
	*ring
	in     *inbound
	export *Export
	number uint64 // of the import
	head   uint64
	gave   uint64 // credits, ever
	bell   *os.File
	broken bool // an entry broke the rules
	over   bool
	ended  chan struct{} // closed once over is set
}

// sharing is what goes along with a grant of shared memory: descriptors of the memory, of the ring and of
// its bell.
type sharing struct {
	reader *ringReader
	fds    []int
}

// descriptors is how many a grant of shared memory has.
const descriptors = 3

// share prepares a grant of shared memory.
func (in *inbound) share(e *Export, credits uint64) (s *sharing, err error) {
	r, ringFD, err := newRing(credits)
	if err != nil {
		return nil, err
	}
	s = &sharing{fds: []int{-1, ringFD, -1}}
	bell := -1
	if s.fds[0], err = unix.FcntlInt(uintptr(e.block.fd), unix.F_DUPFD_CLOEXEC, 0); err == nil {
		// Not blocking, so that Go's poller waits for it.
		if bell, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err == nil {
			s.fds[2], err = unix.FcntlInt(uintptr(bell), unix.F_DUPFD_CLOEXEC, 0)
		}
	}
	if err != nil {
		r.unmap()
		closeAll(append(s.fds, bell))
		return nil, err
	}
	s.reader = &ringReader{ring: r, in: in, export: e, bell: os.NewFile(uintptr(bell), "bell"), ended: make(chan struct{})}
	return s, nil
}

func closeAll(fds []int) {
	for _, fd := range fds {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}

// start gives the ring its import, and a goroutine that takes notifications out of it. Node.mu is held.
func (r *ringReader) start(number uint64) {
	r.number = number
	if r.in.node.spawn(r.listen) != nil { // this node closes, and sends nothing any more
		r.unmap()
		r.bell.Close()
		return
	}
	r.in.rings[number] = r
	r.export.rings = append(r.export.rings, r)
}

// listen takes notifications out of the ring until its import ends.
func (r *ringReader) listen() {
	in := r.in
	n := in.node
	for {
		n.mu.Lock()
		r.drain()
		head, over := r.head, r.over
		if over {
			r.unmap()
		}
		n.mu.Unlock()
		if over {
			return
		}
		if in.reason() != nil {
			<-r.ended // soon: the connection is over
			continue
		}
		if err := r.wait(head); err != nil {
			select {
			case <-r.ended: // and the bell was closed
			default:
				in.fail(err)
			}
		}
	}
}

// wait returns when there is an entry after the first head ones, or when the bell has rung. It leaves the count
// of the eventfd alone, which it would need a read(2) for: Go's poller hears of every write to it (epoll(7),
// EPOLLET), and keeps what it hears from the first call of the function on.
func (r *ringReader) wait(head uint64) error {
	bell, err := r.bell.SyscallConn()
	if err != nil {
		return err
	}
	slept := false
	return bell.Read(func(uintptr) bool {
		awake := slept || !r.sleep(head)
		slept = true
		return awake
	})
}

// drain takes what is in the ring, once around: an importer that is as fast must not keep Node.mu. An entry that
// breaks the rules ends the connection, and with it the ring. Node.mu is held.
func (r *ringReader) drain() {
	for k := 0; k < len(r.entries) && !r.over && !r.broken; k++ {
		e, ok, err := r.take(r.head)
		if err == nil && !ok {
			return
		}
		if err == nil {
			r.head++
			err = r.in.notification(r.number, e)
		}
		if err != nil {
			r.broken = true
			r.in.fail(err)
		}
	}
}

// closeRing ends the ring of an import after what is in it. Node.mu is held.
func (in *inbound) closeRing(number uint64) {
	r := in.rings[number]
	if r == nil {
		return
	}
	r.drain()
	r.over = true
	close(r.ended)
	delete(in.rings, number)
	r.export.rings = slices.DeleteFunc(r.export.rings, func(o *ringReader) bool { return o == r })
	r.bell.Close()
}
