package ctable

import (
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"pinwheel/mem"
	"pinwheel/vmwatch"
)

// outside returns zeroed memory outside the Go heap.
func outside[T any](t *testing.T) *T {
	var zero T
	m, err := unix.Mmap(-1, 0, int(unsafe.Sizeof(zero)), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Munmap(m) })
	return (*T)(unsafe.Pointer(&m[0]))
}

// kernelLog is what C code sees of the log: the word and its records, as the BPF programs write them.
type kernelLog struct {
	word    uint64
	records [4096]struct{ start, end, check, seq uint64 }
}

// watcher has the log of a kernel that tests change mappings in.
type watcher struct {
	*kernelLog
	interest  *[vmwatch.GranuleCount]uint32
	refuses   func() error // Watch; nil: it doesn't
	verify    bool         // by Watch
	foreign   bool         // Pinned refuses
	absent    bool         // Pinned finds no pages, and does not know why
	asked     int          // calls of Pinned
	unwritten bool         // records are not there when the word has moved

	mu  sync.Mutex
	log []mem.Range
	at  int // Drain
}

func newWatcher(t *testing.T) *watcher {
	return &watcher{kernelLog: outside[kernelLog](t), interest: outside[[vmwatch.GranuleCount]uint32](t)}
}

func (w *watcher) count(r mem.Range, n uint32) {
	for g := uint64(r.Start) >> vmwatch.GranuleBits; g <= (uint64(r.End)-1)>>vmwatch.GranuleBits; g++ {
		atomic.AddUint32(&w.interest[g%vmwatch.GranuleCount], n)
	}
}

// publish tells of a change, as the kernel does before it makes one and after.
func (w *watcher) publish(r mem.Range) {
	for g := uint64(r.Start) >> vmwatch.GranuleBits; g <= (uint64(r.End)-1)>>vmwatch.GranuleBits; g++ {
		if atomic.LoadUint32(&w.interest[g%vmwatch.GranuleCount]) != 0 {
			w.mu.Lock()
			w.log = append(w.log, r)
			w.record(r)
			w.mu.Unlock()
			return
		}
	}
}

// record is publish_watched of vmwatch/bpf/watch.bpf.c. What the test unwrites can't be read yet.
func (w *watcher) record(r mem.Range) {
	n := atomic.AddUint64(&w.word, 1) - 1
	if w.unwritten {
		return
	}
	rec, start, end := &w.records[n%uint64(len(w.records))], uint64(r.Start), uint64(r.End)
	atomic.StoreUint64(&rec.start, start)
	atomic.StoreUint64(&rec.end, end)
	atomic.StoreUint64(&rec.check, start*0x9e3779b97f4a7c15+end*0xc2b2ae3d27d4eb4f+n+1)
	atomic.StoreUint64(&rec.seq, n+1)
}

func (w *watcher) Word() *uint64     { return &w.word }
func (w *watcher) Records() *uint64  { return &w.records[0].start }
func (w *watcher) Interest() *uint32 { return &w.interest[0] }
func (w *watcher) Watch(r mem.Range) (uint64, bool, error) {
	if w.refuses != nil {
		return 0, false, w.refuses()
	}
	w.count(r, 1)
	return uint64(r.Start)<<8 | r.Len()/uint64(mem.PageSize), w.verify, nil
}
func (w *watcher) Pinning(uint64) {}
func (w *watcher) Pinned(uint64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch w.asked++; {
	case w.foreign:
		return vmwatch.ErrForeign
	case w.absent:
		return mem.ErrChanged
	}
	return nil
}
func (w *watcher) Unchanged(uint64) bool { return true }
func (w *watcher) Unwatch(token uint64) {
	start := mem.Addr(token >> 8)
	w.Uninterest(mem.Range{Start: start, End: start + mem.Addr(token&0xff)*mem.Addr(mem.PageSize)})
}
func (w *watcher) Uninterest(r mem.Range) { w.count(r, ^uint32(0)) }
func (w *watcher) Drain(drop func(mem.Range)) uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	for ; w.at < len(w.log); w.at++ {
		drop(w.log[w.at])
	}
	return uint64(w.at)
}
func (w *watcher) ChangedSince(generation uint64, r mem.Range) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, o := range w.log[min(generation, uint64(len(w.log))):] {
		if o.Overlaps(r) {
			return true
		}
	}
	return false
}

// interested adds up all counts.
func (w *watcher) interested() (n uint32) {
	for i := range w.interest {
		n += atomic.LoadUint32(&w.interest[i])
	}
	return n
}
