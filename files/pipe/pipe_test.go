package pipe_test

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"pinwheel/files/pipe"
	"pinwheel/internal/testwait"
	"pinwheel/verbs"
)

var (
	errDevice = errors.New("device is dead")
	errFile   = errors.New("file is gone")
)

// model is what a transfer must have done so far, by the steps that it began and what came of them.
type model struct {
	t     *rapid.T
	pipe  *pipe.Pipe
	shape pipe.Shape // with its chunk size
	bytes int64      // until a fetch or a registration fails

	steps      [2]*pipe.Step // that a thread does
	fetched    map[pipe.Chunk]int64
	registered map[pipe.Chunk]bool // or being registered or released
	posted     []pipe.Chunk
	complete   map[pipe.Chunk]bool
	postedTo   int64 // where the next post begins
	stopped    bool
}

func newModel(t *rapid.T) *model {
	m := &model{t: t, fetched: map[pipe.Chunk]int64{}, registered: map[pipe.Chunk]bool{}, complete: map[pipe.Chunk]bool{}}
	m.bytes = rapid.Int64Range(0, 600<<10).Draw(t, "bytes")
	m.shape = pipe.Shape{
		Source:     pipe.Source(rapid.IntRange(0, 1).Draw(t, "source")),
		ChunkBytes: rapid.SampledFrom([]int64{0, 1, 4096, 50_000, 64 << 10, 200 << 10}).Draw(t, "chunk"),
		Depth:      rapid.IntRange(1, 5).Draw(t, "depth"),
	}
	if m.shape.ChunkBytes == 1 {
		m.bytes %= 100
	}
	m.shape.Ahead = rapid.IntRange(0, m.shape.Depth).Draw(t, "ahead")
	var err error
	if m.pipe, err = pipe.New(m.bytes, m.shape); err != nil {
		t.Fatal(err)
	}
	m.shape.ChunkBytes = cmp.Or(m.shape.ChunkBytes, max(m.bytes, 1))
	return m
}

// begin has a thread begin what it has to do. It reports whether there was something.
func (m *model) begin(thread pipe.Thread) bool {
	if m.steps[thread] != nil {
		return false
	}
	step, ok := m.pipe.Next(thread)
	if !ok {
		return false
	}
	c := step.Chunk
	if (step.Kind == pipe.Post) != (thread == pipe.Server) && m.shape.Ahead > 0 || thread == pipe.Worker && m.shape.Ahead == 0 {
		m.t.Fatalf("thread %d is to do %+v", thread, step)
	}
	slots, slotBytes := m.pipe.Ring()
	if c.Source == pipe.Copy && (c.Slot >= slots || c.Len > slotBytes) || c.Source == pipe.Map && (m.shape.Source != pipe.Map || c.Slot >= m.shape.Depth) {
		m.t.Fatalf("%+v has no place in %d slots of %d bytes", c, slots, slotBytes)
	}
	switch step.Kind {
	case pipe.Fetch:
		if c.Len <= 0 || c.At < m.postedTo || c.At+c.Len > m.bytes {
			m.t.Fatalf("%+v is not a part of the %d bytes", c, m.bytes)
		}
		for held := range m.registered {
			if held.Source == c.Source && held.Slot == c.Slot {
				m.t.Fatalf("%+v is fetched into the slot of %+v", c, held)
			}
		}
	case pipe.Register:
		if n, ok := m.fetched[c]; !ok || n != c.Len {
			m.t.Fatalf("%+v is registered, of which %d bytes were fetched", c, n)
		}
		m.registered[c] = true
		m.checkBounds()
	case pipe.Post:
		if !m.registered[c] || m.stopped || c.At != m.postedTo {
			m.t.Fatalf("%+v is posted at %d; registered: %v, stopped: %v", c, m.postedTo, m.registered[c], m.stopped)
		}
	case pipe.Release:
		if !m.registered[c] || slices.Contains(m.posted, c) {
			m.t.Fatalf("%+v is released; registered: %v, posted: %v", c, m.registered[c], m.posted)
		}
	}
	m.steps[thread] = &step
	return true
}

func (m *model) checkBounds() {
	var mapped, all int64
	for c := range m.registered {
		all += c.Len
		if c.Source == pipe.Map {
			mapped++
		}
	}
	if all > m.shape.ChunkBytes*int64(m.shape.Depth) || mapped > int64(m.shape.Depth) {
		m.t.Fatalf("%d bytes are registered, %d chunks of them mapped: %+v", all, mapped, m.shape)
	}
}

// outcomes of a step, by how bad they are.
const (
	fine = iota
	passing
	fatal
)

// finish ends the step of a thread.
func (m *model) finish(thread pipe.Thread, outcome int, n int64) {
	step := *m.steps[thread]
	m.steps[thread] = nil
	c := step.Chunk
	var err error
	switch step.Kind {
	case pipe.Fetch:
		n, err = m.fetch(c, outcome, n)
	case pipe.Register:
		if outcome != fine {
			delete(m.registered, c)
			err = errFile
		}
		if outcome == passing {
			err = fmt.Errorf("full: %w", verbs.ErrPinnedMemory)
		}
	case pipe.Post:
		switch outcome {
		case fine:
			m.posted = append(m.posted, c)
			m.postedTo += c.Len
		case passing:
			err = verbs.ErrBusy
			m.stopped = m.stopped || len(m.posted) == 0
		case fatal:
			err = errDevice
			m.stopped = true
		}
	case pipe.Release:
		delete(m.registered, c)
	}
	m.pipe.Done(step, n, err)
	if err != nil && outcome == fatal && m.pipe.Err() == nil {
		m.t.Fatalf("%v of %+v is no error of the transfer", err, step)
	}
}

// fetch says what the file has. A file that was cut short stays so.
func (m *model) fetch(c pipe.Chunk, outcome int, n int64) (int64, error) {
	var err error
	if outcome == fine {
		n = c.Len
	} else if n %= c.Len; outcome == fatal {
		err = errFile
	}
	delete(m.fetched, c)
	if outcome != fine {
		m.bytes = c.At + n
	}
	c.Len = n
	m.fetched[c] = n
	return n, err
}

func (m *model) completes(c pipe.Chunk, err error) {
	m.posted = slices.DeleteFunc(m.posted, func(p pipe.Chunk) bool { return p == c })
	m.complete[c] = err == nil
	m.stopped = m.stopped || err != nil
	m.pipe.Completed(c, err)
}

// sent is how far complete chunks lie without a gap.
func (m *model) sent() (to int64) {
	for more := true; more; {
		more = false
		for c, ok := range m.complete {
			if ok && c.At == to && c.Len > 0 {
				to, more = to+c.Len, true
			}
		}
	}
	return to
}

// drain lets all that is under way end well. It fails if the transfer does not come to an end.
func (m *model) drain() {
	for !m.pipe.Finished() {
		progress := false
		for _, thread := range []pipe.Thread{pipe.Server, pipe.Worker} {
			if m.begin(thread) || m.steps[thread] != nil {
				m.finish(thread, fine, 0)
				progress = true
			}
		}
		if !progress && len(m.posted) > 0 {
			m.completes(m.posted[0], nil)
			progress = true
		}
		if !progress {
			m.t.Fatalf("nothing is under way, and the transfer not over: %+v", m.pipe.Stats())
		}
	}
	sent := m.sent()
	if got := m.pipe.Stats().SentBytes; got != sent {
		m.t.Fatalf("%d bytes sent, says the pipe: %d", sent, got)
	}
	if m.pipe.Err() == nil && sent != m.bytes || !m.stopped && sent > m.bytes || len(m.registered) > 0 || len(m.posted) > 0 {
		m.t.Fatalf("at the end %d of %d bytes are sent, %v registered, %v posted: %v", sent, m.bytes, m.registered, m.posted, m.pipe.Err())
	}
}

func TestTransfersAgainstAModel(t *testing.T) {
	testwait.Bound(t)
	for range 20 { // faults meet others rarely
		rapid.Check(t, transfer)
	}
}

func transfer(t *rapid.T) {
	m := newModel(t)
	t.Repeat(map[string]func(*rapid.T){
		"begin": func(t *rapid.T) {
			if !m.begin(pipe.Thread(rapid.IntRange(0, 1).Draw(t, "thread"))) {
				t.Skip("nothing to do")
			}
		},
		"finish": func(t *rapid.T) {
			thread := pipe.Thread(rapid.IntRange(0, 1).Draw(t, "thread"))
			if m.steps[thread] == nil {
				t.Skip("nothing begun")
			}
			outcome := max(rapid.IntRange(-6, fatal).Draw(t, "outcome"), fine)
			m.finish(thread, outcome, rapid.Int64Range(0, 1<<20).Draw(t, "n"))
		},
		"complete": func(t *rapid.T) {
			if len(m.posted) == 0 {
				t.Skip("nothing posted")
			}
			var err error
			if rapid.IntRange(0, 20).Draw(t, "fails") == 20 {
				err = errDevice
			}
			m.completes(rapid.SampledFrom(m.posted).Draw(t, "which"), err)
		},
		"stop": func(t *rapid.T) {
			if rapid.IntRange(0, 20).Draw(t, "really") < 20 {
				t.Skip("not now")
			}
			m.pipe.Stop(errDevice)
			m.stopped = true
		},
		"": func(*rapid.T) { m.checkBounds() },
	})
	m.drain()
}

// A chunk whose pages can't be registered goes by the ring, all of it, and the next one is mapped again.
func TestARefusedChunkIsCopied(t *testing.T) {
	testwait.Bound(t)
	p, err := pipe.New(600<<10, pipe.Shape{Source: pipe.Map, ChunkBytes: 200 << 10, Depth: 2})
	if err != nil {
		t.Fatal(err)
	}
	var sources string
	refused := false
	for !p.Finished() {
		step, ok := p.Next(pipe.Server)
		if !ok {
			t.Fatalf("stuck after %s", sources)
		}
		err = nil
		if step.Kind == pipe.Register && step.Chunk.At == 200<<10 && step.Chunk.Source == pipe.Map {
			refused, err = true, verbs.ErrRegions
		}
		p.Done(step, step.Chunk.Len, err)
		if step.Kind == pipe.Post {
			sources += fmt.Sprintf("%v %d\n", step.Chunk.Source, step.Chunk.Len>>10)
			p.Completed(step.Chunk, nil)
		}
	}
	if want := "map 200\ncopy 64\ncopy 64\ncopy 64\ncopy 8\nmap 200\n"; sources != want || !refused || p.Err() != nil {
		t.Errorf("%s%v, want\n%s", sources, p.Err(), want)
	}
	if s := p.Stats(); s.Refused != 1 || s.CopiedBytes != 200<<10 || s.SentBytes != 600<<10 || s.Registrations != 6 {
		t.Errorf("%+v", s)
	}
}

func TestShapesThatMakeNoSenseAreErrors(t *testing.T) {
	for _, s := range []pipe.Shape{{Source: 2, Depth: 1}, {ChunkBytes: -1, Depth: 1}, {}, {Depth: 1, Ahead: 2}, {Depth: 1, Ahead: -1}} {
		if _, err := pipe.New(1, s); err == nil {
			t.Errorf("%+v is a shape", s)
		}
	}
}
