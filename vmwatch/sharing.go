package vmwatch

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"pinwheel/internal/change"
)

// BoardWords is the size of a Board.
const BoardWords = 48

// Board is memory that the processes of a job share on a node: node.Member implements it.
type Board interface {
	// UpdateBoard calls update while no other process does. What it leaves in words is what the next one
	// finds; all are 0 at first. It fails, and calls nothing, if it can't do so in time.
	UpdateBoard(patience time.Duration, update func(words *[BoardWords]uint64)) error
}

// boardPatience is how long a process waits for another one to load programs. Then it loads its own.
const boardPatience = 2 * time.Second

// The board says under which numbers the kernel has the programs that a process of the job has loaded and
// tested, and what belongs to them. They go when the last process that has opened them ends; then nobody can
// open them, and the next process puts its own there. The kernel gives a number to another object
// only after two billion.
const (
	boardKey   = iota // of the programs and their mechanism; 0: none yet
	boardLinks        // how many there are
	boardLogs
	boardCaptured
	boardInspect
	boardFirstLink
)

// boardLayout is raised with each change of the words above.
const boardLayout = 2

// sharedKey differs for programs that can't be used in place of each other.
var sharedKey = sync.OnceValue(func() uint64 {
	sum := sha256.Sum256(append(bytes.Clone(bpfObject), boardLayout))
	return binary.NativeEndian.Uint64(sum[:]) << 8
})

// loadOrJoin returns a tested source for m: with the programs of another process of the job, if the board has any,
// and else with its own, which the others can use from then on. A process pays a twentieth for those of others.
func loadOrJoin(m Mechanism, board Board) (s *source, err error) {
	if board == nil || m != Fentry && m != TPS && m != TP || !mayOpenObjects() {
		return loadAndTest(m)
	}
	called := false
	_ = board.UpdateBoard(boardPatience, func(words *[BoardWords]uint64) {
		called = true
		if s, err = join(m, words); err == nil {
			return
		}
		if s, err = loadAndTest(m); err == nil {
			publishObjects(words, m, &s.note.(*bpfNotifier).bpfObjects)
		}
	})
	if !called { // another process has stopped, or the segment is of no use: that is no concern of this one
		return loadAndTest(m)
	}
	return s, err
}

// mayOpenObjects reports whether this process may open BPF objects by their numbers, which takes CAP_SYS_ADMIN
// (bpf(2)). The others have nothing to share, so they must not wait for each other.
func mayOpenObjects() bool {
	fd, err := openBPFObject(unix.BPF_MAP_GET_FD_BY_ID, 0) // no object has it
	if err == nil {
		unix.Close(fd)
	}
	return !errors.Is(err, unix.EPERM)
}

// oneWait is a Board that waits for another process only once. If that one has stopped, it stops every mechanism.
type oneWait struct {
	Board
	err error
}

// UpdateBoard implements Board.
func (b *oneWait) UpdateBoard(patience time.Duration, update func(words *[BoardWords]uint64)) error {
	if b.err == nil {
		b.err = b.Board.UpdateBoard(patience, update)
	}
	return b.err
}

var errNothingToJoin = errors.New("no process of the job has loaded these programs")

// join opens the programs of another process. That they notice every change was tested where they were loaded; what is
// tested here is that they serve this process.
func join(m Mechanism, words *[BoardWords]uint64) (*source, error) {
	if words[boardKey] != sharedKey()+uint64(m) || words[boardLinks] > BoardWords-boardFirstLink {
		return nil, errNothingToJoin
	}
	s := &source{mechanism: m}
	if err := s.openPages(); err != nil {
		return nil, errors.Join(err, s.close())
	}
	n, err := openObjects(words, s.pages)
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	s.note = n
	return s.testedFor(change.Kinds[:2])
}

func openObjects(words *[BoardWords]uint64, pages *pageReader) (_ *bpfNotifier, err error) {
	n := &bpfNotifier{bpfObjects: bpfObjects{logs: -1, captured: -1, inspect: -1}}
	defer func() {
		if err != nil {
			n.close()
		}
	}()
	for _, o := range []struct {
		fd      *int
		command uintptr
		at      int
	}{
		{&n.logs, unix.BPF_MAP_GET_FD_BY_ID, boardLogs},
		{&n.captured, unix.BPF_MAP_GET_FD_BY_ID, boardCaptured},
		{&n.inspect, unix.BPF_PROG_GET_FD_BY_ID, boardInspect},
	} {
		if *o.fd, err = openBPFObject(o.command, uint32(words[o.at])); err != nil {
			return nil, err
		}
	}
	for _, id := range words[boardFirstLink:][:words[boardLinks]] {
		fd, err := openBPFObject(unix.BPF_LINK_GET_FD_BY_ID, uint32(id))
		if err != nil {
			return nil, err
		}
		n.links = append(n.links, descriptor(fd))
	}
	return n, n.enrol(pages)
}

type descriptor int

func (d descriptor) Close() error { return unix.Close(int(d)) }
func (d descriptor) FD() int      { return int(d) }

// publishObjects tells the others of the programs of this process. Where the kernel does not say their numbers,
// nobody learns of them.
func publishObjects(words *[BoardWords]uint64, m Mechanism, o *bpfObjects) {
	*words = [BoardWords]uint64{}
	fds := []int{boardLogs: o.logs, boardCaptured: o.captured, boardInspect: o.inspect}
	for _, l := range o.links {
		l, ok := l.(interface {
			io.Closer
			FD() int
		})
		if !ok {
			return
		}
		fds = append(fds, l.FD())
	}
	if len(fds) > BoardWords {
		return
	}
	var found [BoardWords]uint64
	for i, fd := range fds[boardLogs:] {
		id, err := bpfObjectID(fd)
		if err != nil {
			return
		}
		found[boardLogs+i] = uint64(id)
	}
	*words = found
	words[boardKey], words[boardLinks] = sharedKey()+uint64(m), uint64(len(o.links))
}
