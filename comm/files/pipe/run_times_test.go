package pipe_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/atomic"

	"pinwheel/comm/files/pipe"
	"pinwheel/verbs"
)

// paced is a device that takes a known time for each step.
type paced struct {
	fetch, register, wire time.Duration
	pipe.Inbox
	last      time.Time // when the wire is free
	cancelled []error
}

func (d *paced) Fetch(c pipe.Chunk) (int64, error) { time.Sleep(d.fetch); return c.Len, nil }
func (d *paced) Register(pipe.Chunk) error         { time.Sleep(d.register); return nil }
func (d *paced) Release(pipe.Chunk)                {}
func (d *paced) Cancel(cause error)                { d.cancelled = append(d.cancelled, cause) }

func (d *paced) Post(c pipe.Chunk) error {
	d.last = slices.MaxFunc([]time.Time{d.last, time.Now()}, time.Time.Compare).Add(d.wire)
	time.AfterFunc(time.Until(d.last), func() { d.Put(pipe.Completion{Chunk: c}) })
	return nil
}

// Ten chunks of 5 ms to prepare and 8 ms on the wire.
func TestStepsOverlapAsTheShapeSays(t *testing.T) {
	for _, c := range []struct {
		depth int
		want  time.Duration
	}{
		{1, 130 * time.Millisecond},
		{2, 85 * time.Millisecond},
		{6, 85 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			p, err := pipe.New(10<<20, pipe.Shape{Source: pipe.Map, ChunkBytes: 1 << 20, Depth: c.depth})
			if err != nil {
				t.Fatal(err)
			}
			d := &paced{
				fetch: 2 * time.Millisecond, register: 3 * time.Millisecond, wire: 8 * time.Millisecond,
				Inbox: pipe.NewInbox(c.depth),
			}
			began := time.Now()
			times, err := pipe.Run(t.Context(), p, d)
			if err != nil || time.Since(began) != c.want || times.Wall != c.want {
				t.Errorf("depth %d: %v after %v, want %v", c.depth, err, time.Since(began), c.want)
			}
			prepared := times.Fetch + times.Register
			if prepared != 50*time.Millisecond || times.Sending < 80*time.Millisecond {
				t.Errorf("depth %d: %+v", c.depth, times)
			}
		})
	}
}

// What was posted before the caller gave up is still waited for, since the device reads its memory.
func TestACancelledTransferWaitsForItsPosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := errors.New("client is gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(20*time.Millisecond, func() { cancel(gone) })
		p, err := pipe.New(10<<20, pipe.Shape{Source: pipe.Map, ChunkBytes: 1 << 20, Depth: 3})
		if err != nil {
			t.Fatal(err)
		}
		d := &paced{register: time.Millisecond, wire: 8 * time.Millisecond, Inbox: pipe.NewInbox(3)}
		_, err = pipe.Run(ctx, p, d)
		if !errors.Is(err, gone) || p.Outstanding() != 0 || !p.Finished() || p.Stats().SentBytes != 5<<20 {
			t.Errorf("%v, %d outstanding, %+v", err, p.Outstanding(), p.Stats())
		}
		if !slices.Equal(d.cancelled, []error{gone}) {
			t.Errorf("the device hears %v", d.cancelled)
		}
	})
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
						paced: paced{wire: time.Millisecond, Inbox: pipe.NewInbox(2)},
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
						paced: paced{Inbox: pipe.NewInbox(2)},
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
