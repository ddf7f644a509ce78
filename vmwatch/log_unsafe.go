package vmwatch

import (
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"pinwheel/mem"
)

// bpfShared mirrors struct shared of bpf/watch.bpf.c. Its words are raw, for sync/atomic: BPF programs write them.
type bpfShared struct {
	control  bpfControl
	records  [RecordCount]bpfRecord
	interest interest
}

type bpfControl struct {
	head  uint64
	_     [7]uint64
	blind uint64    // changes go unseen from now on
	_     [7]uint64 // the programs' own
}

type bpfRecord struct{ start, end, check, seq uint64 }

// RecordCount is how many records there are: number n of Generation is at place n % RecordCount of Watcher.Records.
const RecordCount = 4096

// changeLog is the log that the BPF programs write. A slot belongs to the
// program that drew its number from head until seq shows number+1, then to the
// readers until head has gone round once; a reader that is behind by more than
// half the log gives up and reports an overrun, which drops everything.
type changeLog struct {
	control *bpfControl
	records *[RecordCount]bpfRecord
}

// publishTries is how often a reader yields to a writer that has drawn a number
// but not yet published (it was descheduled between the two).
const publishTries = 1000

func (l *changeLog) drain(seen uint64, report func(mem.Range)) (next uint64, overrun bool) {
	if atomic.LoadUint64(&l.control.blind) != 0 {
		// Move the generation, so that every hit drains again, and let
		// every drain drop everything.
		return atomic.AddUint64(&l.control.head, 1), true
	}
	head := atomic.LoadUint64(&l.control.head)
	for ; seen != head; seen++ {
		r, ok := l.read(seen)
		if !ok || atomic.LoadUint64(&l.control.head)-seen > RecordCount/2 {
			return head, true
		}
		report(r)
	}
	return seen, false
}

// read returns record n unless it was overwritten or isn't published in time.
func (l *changeLog) read(n uint64) (mem.Range, bool) {
	rec := &l.records[n%RecordCount]
	for tries := 0; atomic.LoadUint64(&rec.seq) != n+1; tries++ {
		if tries == publishTries || atomic.LoadUint64(&rec.seq) > n+1 {
			return mem.Range{}, false
		}
		runtime.Gosched()
	}
	start, end, check := atomic.LoadUint64(&rec.start), atomic.LoadUint64(&rec.end), atomic.LoadUint64(&rec.check)
	ok := check == start*0x9e3779b97f4a7c15+end*0xc2b2ae3d27d4eb4f+n+1
	return mem.Range{Start: mem.Addr(start), End: mem.Addr(end)}, ok
}

// mapShared maps the n bytes of fd (a BPF array map) for reading and writing.
func mapShared[T any](fd int) (*T, error) {
	var zero T
	page := uintptr(os.Getpagesize())
	n := (unsafe.Sizeof(zero) + page - 1) &^ (page - 1)
	p, err := unix.MmapPtr(fd, 0, nil, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("mmap of %d bytes of a BPF map: %w", n, err)
	}
	return (*T)(p), nil
}

// unmapShared ends mapShared of memory that nobody else uses.
func unmapShared[T any](p *T) {
	page := uintptr(os.Getpagesize())
	_ = unix.MunmapPtr(unsafe.Pointer(p), (unsafe.Sizeof(*p)+page-1)&^(page-1))
}

// replaceByZeros ends mapShared or mapPrivate of memory that others may be about to use: a hit reads the
// generation word, and a C thread counts itself into interest. There stays memory, all zeros, for as
// long as its owner can be reached.
func replaceByZeros[T, O any](p *T, owner *O) {
	if p == nil {
		return
	}
	page := uintptr(os.Getpagesize())
	n := (unsafe.Sizeof(*p) + page - 1) &^ (page - 1)
	const readWrite = unix.PROT_READ | unix.PROT_WRITE
	if _, err := unix.MmapPtr(-1, 0, unsafe.Pointer(p), n, readWrite,
		unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_FIXED); err != nil {
		return // too many mappings: what is there stays
	}
	runtime.AddCleanup(owner, func(a uintptr) { _ = unix.MunmapPtr(pointer(mem.Addr(a)), n) }, uintptr(unsafe.Pointer(p)))
}
