package pipe_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/atomic"
	"golang.org/x/sys/unix"

	"pinwheel"
	"pinwheel/files/pipe"
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

	uses        map[pipe.Chunk]*pinwheel.Use // of the thread that registers
	wire        chan pipe.Chunk
	completions chan pipe.Completion
	to          []byte
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
	l.completions = make(chan pipe.Completion, cap(l.wire))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for c := range l.wire {
			copy(l.to[c.At:], l.memory(c))
			l.completions <- pipe.Completion{Chunk: c}
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

func (l *local) Completions() <-chan pipe.Completion { return l.completions }

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
				shape := s.For(n, 1<<20, false)
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

// paced is a device that takes a known time for each step.
type paced struct {
	fetch, register, wire time.Duration
	completions           chan pipe.Completion
	last                  time.Time // when the wire is free
	cancelled             []error
}

func (d *paced) Fetch(c pipe.Chunk) (int64, error) { time.Sleep(d.fetch); return c.Len, nil }
func (d *paced) Register(pipe.Chunk) error         { time.Sleep(d.register); return nil }
func (d *paced) Release(pipe.Chunk)                {}
func (d *paced) Cancel(cause error)                { d.cancelled = append(d.cancelled, cause) }

func (d *paced) Post(c pipe.Chunk) error {
	d.last = slices.MaxFunc([]time.Time{d.last, time.Now()}, time.Time.Compare).Add(d.wire)
	time.AfterFunc(time.Until(d.last), func() { d.completions <- pipe.Completion{Chunk: c} })
	return nil
}

func (d *paced) Completions() <-chan pipe.Completion { return d.completions }

// Ten chunks of 5 ms to prepare and 8 ms on the wire.
func TestStepsOverlapAsTheShapeSays(t *testing.T) {
	for _, c := range []struct {
		depth, ahead int
		want         time.Duration
	}{
		{1, 0, 130 * time.Millisecond},
		{2, 0, 85 * time.Millisecond},
		{1, 1, 130 * time.Millisecond},
		{6, 4, 85 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			p, err := pipe.New(10<<20, pipe.Shape{Source: pipe.Map, ChunkBytes: 1 << 20, Depth: c.depth, Ahead: c.ahead})
			if err != nil {
				t.Fatal(err)
			}
			d := &paced{
				fetch: 2 * time.Millisecond, register: 3 * time.Millisecond, wire: 8 * time.Millisecond,
				completions: make(chan pipe.Completion, c.depth),
			}
			began := time.Now()
			times, err := pipe.Run(t.Context(), p, d)
			if err != nil || time.Since(began) != c.want || times.Wall != c.want {
				t.Errorf("depth %d, %d ahead: %v after %v, want %v", c.depth, c.ahead, err, time.Since(began), c.want)
			}
			prepared := times.Fetch + times.Register
			if prepared != 50*time.Millisecond || times.Sending < 80*time.Millisecond {
				t.Errorf("depth %d, %d ahead: %+v", c.depth, c.ahead, times)
			}
		})
	}
}

// What was posted before the caller gave up is still waited for, since the device reads its memory.
func TestACancelledTransferWaitsForItsPosts(t *testing.T) {
	for _, ahead := range []int{0, 2} {
		synctest.Test(t, func(t *testing.T) {
			gone := errors.New("client is gone")
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(20*time.Millisecond, func() { cancel(gone) })
			p, err := pipe.New(10<<20, pipe.Shape{Source: pipe.Map, ChunkBytes: 1 << 20, Depth: 3, Ahead: ahead})
			if err != nil {
				t.Fatal(err)
			}
			d := &paced{register: time.Millisecond, wire: 8 * time.Millisecond, completions: make(chan pipe.Completion, 3)}
			_, err = pipe.Run(ctx, p, d)
			if !errors.Is(err, gone) || p.Outstanding() != 0 || !p.Finished() || p.Stats().SentBytes != 5<<20 {
				t.Errorf("ahead %d: %v, %d outstanding, %+v", ahead, err, p.Outstanding(), p.Stats())
			}
			if !slices.Equal(d.cancelled, []error{gone}) {
				t.Errorf("ahead %d: the device hears %v", ahead, d.cancelled)
			}
		})
	}
}

// crowded is a device of which others have used up something until a time.
type crowded struct {
	paced
	until map[pipe.Kind]time.Time
	tries [4]atomic.Int64 // by kind
}

func (d *crowded) refuses(k pipe.Kind) error {
	d.tries[k].Inc()
	if time.Now().Before(d.until[k]) {
		return fmt.Errorf("others: %w", verbs.ErrBusy)
	}
	return nil
}

func (d *crowded) Register(pipe.Chunk) error { return d.refuses(pipe.Register) }

func (d *crowded) Post(c pipe.Chunk) error {
	if err := d.refuses(pipe.Post); err != nil {
		return err
	}
	return d.paced.Post(c)
}

// A transfer that has nothing posted hears of no completion that could make room for it.
func TestAShortageThatOthersMakeEndsNoTransfer(t *testing.T) {
	for _, source := range []pipe.Source{pipe.Copy, pipe.Map} {
		for _, ahead := range []int{0, 2} {
			for _, kind := range []pipe.Kind{pipe.Register, pipe.Post} {
				synctest.Test(t, func(t *testing.T) {
					p, err := pipe.New(4<<20, pipe.Shape{Source: source, ChunkBytes: 1 << 20, Depth: 2, Ahead: ahead})
					if err != nil {
						t.Fatal(err)
					}
					d := &crowded{
						paced: paced{wire: time.Millisecond, completions: make(chan pipe.Completion, 2)},
						until: map[pipe.Kind]time.Time{kind: time.Now().Add(time.Second)},
					}
					times, err := pipe.Run(t.Context(), p, d)
					if err != nil || p.Stats().SentBytes != 4<<20 || times.Wall > 1100*time.Millisecond {
						t.Errorf("%v, ahead %d, busy in step %d: %v after %v, %+v", source, ahead, kind, err, times.Wall, p.Stats())
					}
					if n := d.tries[kind].Load(); n < 50 || n > 1010 {
						t.Errorf("%v, ahead %d, busy in step %d: tried %d times", source, ahead, kind, n)
					}
				})
				synctest.Test(t, func(t *testing.T) { // and nobody waits for what does not pass
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					p, err := pipe.New(4<<20, pipe.Shape{Source: source, ChunkBytes: 1 << 20, Depth: 2, Ahead: ahead})
					if err != nil {
						t.Fatal(err)
					}
					d := &crowded{
						paced: paced{completions: make(chan pipe.Completion, 2)},
						until: map[pipe.Kind]time.Time{kind: time.Now().Add(time.Hour)},
					}
					times, err := pipe.Run(ctx, p, d)
					if !errors.Is(err, context.DeadlineExceeded) || times.Wall != time.Second || !p.Finished() {
						t.Errorf("%v, ahead %d, busy in step %d: %v after %v", source, ahead, kind, err, times.Wall)
					}
				})
			}
		}
	}
}
