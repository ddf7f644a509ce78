package pipe_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"pinwheel"
	"pinwheel/comm/files/pipe"
	"pinwheel/internal/testwait"
	"pinwheel/mem"
	"pinwheel/verbs"
	"pinwheel/verbs/mlock"
	"pinwheel/verbs/uring"
	"pinwheel/verbs/verbstest"
)

// local is a device whose wire is a goroutine that copies registered memory, in the order of the posts. It registers
// through a Manager, with real pinning.
type local struct {
	t       testing.TB
	thread  *pinwheel.Thread
	ring    []byte
	slot    int64
	file    *os.File
	mapping []byte
	refuse  func(pipe.Chunk) bool
	limit   int64 // bytes that may be pinned; 0 if the policy keeps what is not in use
	usage   verbs.Accountant

	uses map[pipe.Chunk]*pinwheel.Use // of the thread that registers
	wire chan pipe.Chunk
	pipe.Inbox
	to []byte
}

// newLocal returns a device for one transfer of a file.
func newLocal(
	t testing.TB, file *os.File, n int64, p *pipe.Pipe, policy pinwheel.Policy, provider verbs.Provider,
) *local {
	t.Helper()
	m, err := pinwheel.New(pinwheel.Options{
		Policy: policy, Provider: provider, Costs: verbs.DefaultCosts, IdlePolicy: pinwheel.IdleIgnore,
	})
	if err != nil {
		t.Fatal(err)
	}
	thread, err := m.Thread()
	if err != nil {
		t.Fatal(err)
	}
	slots, slotBytes := p.Ring()
	l := &local{
		t: t, thread: thread, file: file, usage: provider.(verbs.Accountant), uses: map[pipe.Chunk]*pinwheel.Use{},
		to: make([]byte, n), slot: slotBytes,
	}
	l.ring, _ = verbstest.Map(t, uint64(int64(slots)*slotBytes))
	if p.Shape().Source == pipe.Map && n > 0 {
		if l.mapping, err = unix.Mmap(int(file.Fd()), 0, int(n), unix.PROT_READ, unix.MAP_SHARED); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Munmap(l.mapping) })
	}
	if policy == pinwheel.OnDemand {
		l.limit = (p.Shape().ChunkBytes + 2*int64(mem.PageSize)) * int64(p.Shape().Depth)
	}
	l.wire = make(chan pipe.Chunk, p.Shape().Depth+slots)
	l.Inbox = pipe.NewInbox(cap(l.wire))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for c := range l.wire {
			copy(l.to[c.At:], l.memory(c))
			l.Put(pipe.Completion{Chunk: c})
		}
	}()
	t.Cleanup(func() {
		close(l.wire)
		<-ended
		thread.Close()
		if err := m.Close(); err != nil {
			t.Error(err)
		}
		if u := l.usage.Usage(); u != (verbs.Usage{}) {
			t.Errorf("%+v is registered at the end", u)
		}
	})
	return l
}

func (l *local) memory(c pipe.Chunk) []byte {
	if c.Source == pipe.Copy {
		return l.ring[int64(c.Slot)*l.slot:][:c.Len]
	}
	return l.mapping[c.At:][:c.Len]
}

func (l *local) Fetch(c pipe.Chunk) (int64, error) {
	if c.Source == pipe.Map {
		first := c.At / int64(mem.PageSize) * int64(mem.PageSize)
		err := unix.Madvise(l.mapping[first:c.At+c.Len], unix.MADV_POPULATE_READ)
		if err != nil && !errors.Is(err, unix.EINVAL) { // before Linux 5.14: registration populates
			return 0, err
		}
		return c.Len, nil
	}
	n, err := l.file.ReadAt(l.memory(c), c.At)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return int64(n), err
}

func (l *local) Register(c pipe.Chunk) error {
	if l.refuse != nil && l.refuse(c) {
		return verbs.ErrPinnedMemory
	}
	u := new(pinwheel.Use)
	if err := l.thread.Acquire(u, mem.RangeOf(l.memory(c)), 0, 1, nil); err != nil {
		return err
	}
	l.uses[c] = u
	if got := l.usage.Usage().PinnedBytes; l.limit > 0 && got > l.limit {
		l.t.Errorf("%d bytes are pinned, more than %d", got, l.limit)
	}
	return nil
}

func (l *local) Post(c pipe.Chunk) error { l.wire <- c; return nil }
func (l *local) Cancel(error)            {} // what is on the wire goes on

func (l *local) Release(c pipe.Chunk) {
	l.thread.Release(l.uses[c])
	delete(l.uses, c)
	if c.Source == pipe.Copy {
		clear(l.memory(c)) // who still reads it gets something else
	}
}

// randomFile returns a file that this process may not write.
func randomFile(t testing.TB, n int64) (*os.File, []byte) {
	t.Helper()
	content := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(content)
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f, content
}

// providerOf returns a provider that pins what a strategy registers. io_uring pins for writing, which a read-only
// mapping does not allow.
func providerOf(t *testing.T, s pipe.Source) verbs.Provider {
	t.Helper()
	var p verbs.Provider
	var err error
	if s == pipe.Copy {
		p, err = uring.Open(uring.Options{})
	} else {
		p, err = mlock.Open()
	}
	verbstest.Available(t, err)
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	verbstest.NeedPinned(t, p, 1<<20)
	return p
}

func TestEveryStrategyServesAFileWithRealPinning(t *testing.T) {
	testwait.Bound(t)
	const size, chunk = 500_001, 32 << 10
	for _, s := range pipe.Strategies() {
		for _, n := range []int64{0, 1, chunk, size} {
			t.Run(fmt.Sprintf("%s, %d bytes", s.Name, n), func(t *testing.T) {
				shape := s.For(n, 1<<20)
				shape.ChunkBytes = min(shape.ChunkBytes, chunk)
				if s.Name == pipe.Dynamic.Name {
					shape.ChunkBytes = 0
				}
				p, err := pipe.New(n, shape)
				if err != nil {
					t.Fatal(err)
				}
				file, content := randomFile(t, n)
				d := newLocal(t, file, n, p, s.Policy, providerOf(t, shape.Source))
				times, err := pipe.Run(t.Context(), p, d)
				if err != nil || !bytes.Equal(d.to, content) {
					t.Fatalf("%v; bytes are right: %v", err, bytes.Equal(d.to, content))
				}
				if want := (n + p.Shape().ChunkBytes - 1) / p.Shape().ChunkBytes; p.Stats().Registrations != want {
					t.Errorf("%+v, want %d registrations", p.Stats(), want)
				}
				if times.Wall <= 0 || n > 0 && (times.Register <= 0 || times.Sending <= 0 || times.Sending > times.Wall) {
					t.Errorf("%+v", times)
				}
			})
		}
	}
}

func TestRefusedRegistrationsAreSentThroughTheRing(t *testing.T) {
	testwait.Bound(t)
	const n = 500_001
	for _, ahead := range []int{0, 2} {
		p, err := pipe.New(n, pipe.Shape{Source: pipe.Map, ChunkBytes: 100_000, Depth: 3, Ahead: ahead})
		if err != nil {
			t.Fatal(err)
		}
		file, content := randomFile(t, n)
		d := newLocal(t, file, n, p, pinwheel.OnDemand, providerOf(t, pipe.Map))
		d.refuse = func(c pipe.Chunk) bool { return c.Source == pipe.Map && c.At/100_000%2 == 1 }
		if _, err := pipe.Run(t.Context(), p, d); err != nil || !bytes.Equal(d.to, content) {
			t.Fatalf("ahead %d: %v; bytes are right: %v", ahead, err, bytes.Equal(d.to, content))
		}
		if s := p.Stats(); s.Refused != 3 || s.CopiedBytes != 200_001 {
			t.Errorf("ahead %d: %+v", ahead, s)
		}
	}
}

// A file that was truncated after it was mapped ends the transfer, and not the process.
func TestATruncatedFileEndsTheTransferWithWhatItHas(t *testing.T) {
	testwait.Bound(t)
	const n, left = 400_000, 150_000
	for _, source := range []pipe.Source{pipe.Copy, pipe.Map} {
		p, err := pipe.New(n, pipe.Shape{Source: source, ChunkBytes: 64 << 10, Depth: 2})
		if err != nil {
			t.Fatal(err)
		}
		file, content := randomFile(t, n)
		d := newLocal(t, file, n, p, pinwheel.OnDemand, providerOf(t, source))
		if err := os.Truncate(file.Name(), left); err != nil {
			t.Fatal(err)
		}
		_, err = pipe.Run(t.Context(), p, d)
		sent := p.Stats().SentBytes
		if err == nil || sent == 0 || sent > left || !bytes.Equal(d.to[:sent], content[:sent]) {
			t.Errorf("%v: %v after %d bytes", source, err, sent)
		}
		if source == pipe.Copy && (sent != left || !errors.Is(err, io.ErrUnexpectedEOF)) {
			t.Errorf("copied: %v after %d bytes, the file has %d", err, sent, left)
		}
	}
}
