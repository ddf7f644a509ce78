package files

import (
	"os"
	"slices"
	"sync"
	"time"

	"go.uber.org/atomic"
	"golang.org/x/sys/unix"

	"pinwheel/mem"
)

// mapping is a file that is mapped, shared and read-only. The processor never touches it: a page behind the end of a
// file that was truncated would be a SIGBUS. It keeps the inode, whose number no other file gets meanwhile.
type mapping struct {
	stamp   stamp
	settled bool // when it was made: it can be used again
	data    []byte
	// mappings.mu protects these.
	refs  int
	stale bool // of another content: it goes with its last reference
	used  time.Time
	again bool // something of it was sent more than once
}

// has tells whether it has the content of the file with a stamp, for certain.
func (m *mapping) has(s stamp) bool { return m.settled && m.stamp == s }

// keepMapping is how long a mapping stays that nobody uses: it keeps the blocks of its file, also if that is removed or
// replaced, and then nothing shows who has them.
const keepMapping = time.Minute

// mappings are those of a Registrar.
type mappings struct {
	most int // that stay
	// forget ends registrations of memory before it is unmapped.
	forget func(mem.Range)

	// mu is a leaf.
	mu     sync.Mutex
	of     map[fileKey]*mapping
	hits   int64
	sent   map[sentRange]struct{}
	recent []fileKey   // files that were sent, the latest first: as many as stay if all are mapped
	wasted int         // how many had to go in vain, less what was sent again: 0 to mostWasted
	timer  *time.Timer // calls expire; nil: there is no mapping
	closed bool

	ending   atomic.Bool // unmapBeside unmaps something
	expiring sync.WaitGroup
}

// find returns the mapping of the file with a stamp, or nil if there is none. It must be given back.
func (ms *mappings) find(s stamp) *mapping {
	ms.mu.Lock()
	m := ms.of[s.fileKey]
	var old *mapping
	switch {
	case m == nil:
	case m.has(s):
		m.refs++
		m.used = time.Now()
		ms.hits++
	default:
		old, m = ms.retire(m), nil
	}
	ms.mu.Unlock()
	ms.unmapBeside(old)
	return m
}

// get is find that maps the file if it is not mapped.
func (ms *mappings) get(f *os.File, s stamp) (*mapping, error) {
	if m := ms.find(s); m != nil {
		return m, nil
	}
	now := time.Now()
	m := &mapping{stamp: s, settled: s.settled(now), refs: 1, used: now}
	var err error
	if m.data, err = mapFile(f, s.size); err != nil {
		return nil, err
	}
	return ms.add(m), nil
}

// add makes m the mapping of its file, and returns it. If another transfer was faster, all use the mapping of that one:
// what is registered in another would be found by none.
func (ms *mappings) add(m *mapping) *mapping {
	var lost *mapping
	ms.mu.Lock()
	switch first := ms.of[m.stamp.fileKey]; {
	case first == nil:
		ms.of[m.stamp.fileKey] = m
		ms.expireLater()
	case first.has(m.stamp):
		first.refs++
		first.used = m.used
		ms.hits++
		lost, m = m, first
	default:
		m.stale = true
	}
	old := ms.spare()
	ms.mu.Unlock()
	ms.unmapBeside(old)
	ms.unmap(lost)
	return m
}

func mapFile(f *os.File, size int64) (data []byte, err error) {
	c, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	if e := c.Control(func(fd uintptr) {
		data, err = unix.Mmap(int(fd), 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
	}); e != nil {
		return nil, e
	}
	return data, os.NewSyscallError("mmap", err)
}

// put gives a mapping back.
func (ms *mappings) put(m *mapping) {
	ms.mu.Lock()
	m.refs--
	m.used = time.Now()
	var old *mapping
	if m.stale && m.refs == 0 {
		old = m
	}
	ms.mu.Unlock()
	ms.unmap(old)
}

// sentRange is where a transfer began, in which version of which file.
type sentRange struct {
	stamp stamp
	from  int64
}

// maxSent ranges are known. After that, all are forgotten.
const maxSent = 4096

// again notes that a range is sent, and tells whether it was before.
func (ms *mappings) again(r sentRange) bool {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	_, before := ms.sent[r]
	if ms.sent == nil || len(ms.sent) >= maxSent {
		ms.sent = map[sentRange]struct{}{}
	}
	ms.sent[r] = struct{}{}
	return before
}

const (
	// enoughWasted mappings that had to go before anything of them was sent again are no accident.
	enoughWasted = 2
	// mostWasted is what is known of them at most: some hits later, files are sent again in time.
	mostWasted = 8
)

// worth tells whether registrations of a file that is sent are worth keeping: until files go in vain, they are. Where
// more are read than stay mapped, none is sent again in time, and to deregister all of a file at its end delays the
// next. again says that the same range of it was sent before. That it is still mapped tells nothing: while files are
// copied, none has to go.
func (ms *mappings) worth(s stamp, again bool) bool {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	at := slices.Index(ms.recent, s.fileKey)
	if again && at >= 0 {
		ms.wasted = max(ms.wasted-1, 0)
		if m := ms.of[s.fileKey]; m != nil && m.has(s) {
			m.again = true
		}
	}
	if at < 0 {
		if len(ms.recent) < ms.most {
			ms.recent = append(ms.recent, fileKey{})
		}
		at = len(ms.recent) - 1
	}
	copy(ms.recent[1:], ms.recent[:at])
	ms.recent[0] = s.fileKey
	return ms.wasted < enoughWasted
}

// goes is retire for a mapping that was not used for long. mu is held.
func (ms *mappings) goes(m *mapping) *mapping {
	if !m.again {
		ms.wasted = min(ms.wasted+1, mostWasted)
	}
	return ms.retire(m)
}

// retire has a mapping found no more. It returns the mapping if nobody uses it. mu is held.
func (ms *mappings) retire(m *mapping) *mapping {
	delete(ms.of, m.stamp.fileKey)
	m.stale = true
	if m.refs > 0 {
		return nil
	}
	return m
}

// spare retires the mapping that was not used for longest, if there are too many. mu is held.
func (ms *mappings) spare() *mapping {
	if len(ms.of) <= ms.most {
		return nil
	}
	var oldest *mapping
	for _, m := range ms.of {
		if m.refs == 0 && (oldest == nil || m.used.Before(oldest.used)) {
			oldest = m
		}
	}
	if oldest == nil {
		return nil // all are in use: transfers bound how many there are
	}
	return ms.goes(oldest)
}

// expireLater has expire called, unless it is going to be. mu is held.
func (ms *mappings) expireLater() {
	if ms.timer == nil && !ms.closed {
		ms.timer = time.AfterFunc(keepMapping, ms.expire)
	}
}

// expire retires what was not used for long, and comes again while something is left.
func (ms *mappings) expire() {
	ms.mu.Lock()
	ms.timer = nil
	var old []*mapping
	for _, m := range ms.of {
		if m.refs == 0 && time.Since(m.used) >= keepMapping {
			old = append(old, ms.goes(m))
		}
	}
	if len(ms.of) > 0 {
		ms.expireLater()
	}
	ms.expiring.Add(1)
	ms.mu.Unlock()
	defer ms.expiring.Done()
	for _, m := range old {
		ms.unmap(m)
	}
}

// unmap ends a mapping that nobody can find or use any more; nil: none.
func (ms *mappings) unmap(m *mapping) {
	if m != nil {
		ms.forget(mem.RangeOf(m.data))
		_ = unix.Munmap(m.data) // it fails for nothing that we mapped
	}
}

// largeMapping is the size in bytes from which unmapping takes longer than to have another goroutine do it.
const largeMapping = 1 << 20 // 1 MiB

// unmapBeside is unmap for a mapping that nobody can find any more. To deregister and unmap a large one takes as long
// as to send some of the next, which need not wait for that. One is ended at a time: no more stay than one beyond those
// that may.
func (ms *mappings) unmapBeside(m *mapping) {
	if m == nil || len(m.data) < largeMapping || !ms.ending.CompareAndSwap(false, true) {
		ms.unmap(m)
		return
	}
	ms.expiring.Go(func() {
		ms.unmap(m)
		ms.ending.Store(false)
	})
}

// count returns how many files are mapped, and how often one was found that was.
func (ms *mappings) count() (files int, hits int64) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	return len(ms.of), ms.hits
}

// close unmaps all. None is in use.
func (ms *mappings) close() {
	ms.mu.Lock()
	all := ms.of
	ms.of, ms.closed = map[fileKey]*mapping{}, true
	if ms.timer != nil {
		ms.timer.Stop() // one that runs finds nothing
	}
	ms.mu.Unlock()
	ms.expiring.Wait()
	for _, m := range all {
		ms.unmap(m)
	}
}
