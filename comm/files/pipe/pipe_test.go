package pipe_test

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"pinwheel/comm/files/pipe"
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

	step       *pipe.Step // that is being done
	fetched    map[pipe.Chunk]int64
	registered map[pipe.Chunk]bool // or being registered or released
	posted     []pipe.Chunk
	complete   map[pipe.Chunk]bool
	postedTo   int64 // where the next post begins
	stopped    bool
	held       bool // the device took nothing more
	starved    bool // a chunk was not registered
	passing    bool // because the provider was busy

	random *rand.Rand
	faults float64 // probability that a step does not end well
	speed  float64 // of the wire: a low one lets posts wait
}

// newModel draws a transfer evenly: rapid's own draws prefer the simplest ones, in which nothing overlaps.
func newModel(t *rapid.T, random *rand.Rand) *model {
	m := &model{
		t: t, random: random,
		fetched: map[pipe.Chunk]int64{}, registered: map[pipe.Chunk]bool{}, complete: map[pipe.Chunk]bool{},
	}
	m.shape = pipe.Shape{
		Source:     pipe.Source(random.IntN(2)),
		ChunkBytes: oneOf[int64](random, 0, 1, 4096, 50_000, 64<<10, 200<<10),
		Depth:      1 + random.IntN(5),
	}
	m.shape.Ahead = random.IntN(m.shape.Depth + 1)
	m.bytes = cmp.Or(m.shape.ChunkBytes, 300_000)*random.Int64N(12) + random.Int64N(max(m.shape.ChunkBytes, 1))
	m.faults = oneOf[float64](random, 0, 0.01, 0.1, 0.4)
	m.speed = oneOf(random, 0.1, 1)
	t.Logf("%d bytes, %+v, faults %g", m.bytes, m.shape, m.faults)
	var err error
	if m.pipe, err = pipe.New(m.bytes, m.shape); err != nil {
		t.Fatal(err)
	}
	m.shape.ChunkBytes = cmp.Or(m.shape.ChunkBytes, max(m.bytes, 1))
	return m
}

// begin begins what has to be done. It reports whether there was something.
func (m *model) begin() bool {
	if m.step != nil {
		return false
	}
	step, ok := m.pipe.Next()
	if !ok {
		return false
	}
	c := step.Chunk
	slots, slotBytes := m.pipe.Ring()
	if c.Source == pipe.Copy && (c.Slot >= slots || c.Len > slotBytes) ||
		c.Source == pipe.Map && (m.shape.Source != pipe.Map || c.Slot >= m.shape.Depth) {
		m.t.Fatalf("%+v has no place in %d slots of %d bytes", c, slots, slotBytes)
	}
	if m.stopped && step.Kind != pipe.Release {
		m.t.Fatalf("%+v begins after the end", step)
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
		if n := m.unposted(); n >= max(m.shape.Ahead, 1) {
			m.t.Fatalf("%+v is fetched, and %d wait to be posted: %+v", c, n, m.shape)
		}
	case pipe.Register:
		if n, ok := m.fetched[c]; !ok || n != c.Len {
			m.t.Fatalf("%+v is registered, of which %d bytes were fetched", c, n)
		}
		if m.starved {
			m.t.Fatalf("%+v is registered, though nothing was released", c)
		}
		m.registered[c] = true
		m.checkBounds()
	case pipe.Post:
		if !m.registered[c] || m.held || c.At != m.postedTo {
			m.t.Fatalf("%+v is posted at %d; registered: %v, held: %v", c, m.postedTo, m.registered[c], m.held)
		}
	case pipe.Release:
		if !m.registered[c] || slices.Contains(m.posted, c) {
			m.t.Fatalf("%+v is released; registered: %v, posted: %v", c, m.registered[c], m.posted)
		}
	}
	m.step = &step
	return true
}

// unposted is how many chunks are registered and behind all posts.
func (m *model) unposted() (n int) {
	for c := range m.registered {
		if c.At >= m.postedTo {
			n++
		}
	}
	return n
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
	busy // with what others do; for a Post that is the same as passing
	fatal
)

// finish ends the step that is being done.
func (m *model) finish(outcome int, n int64) {
	step := *m.step
	m.step = nil
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
			m.starved = c.Source == pipe.Copy && !m.stopped && len(m.registered) > 0
		}
		if outcome == busy {
			err = verbs.ErrBusy
			m.starved, m.passing = !m.stopped, !m.stopped
		}
		if err != nil && !m.starved && (outcome == fatal || c.Source == pipe.Copy) {
			m.bytes = c.At
		}
	case pipe.Post:
		switch outcome {
		case fine:
			m.posted = append(m.posted, c)
			m.postedTo += c.Len
		case passing, busy:
			err = verbs.ErrBusy
			m.held = !m.stopped
		case fatal:
			err = errDevice
			m.stopped = true
		}
	case pipe.Release:
		delete(m.registered, c)
		m.starved, m.passing = false, false
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
	m.held = false
	m.stopped = m.stopped || err != nil
	m.pipe.Completed(c, err)
}

// again has the pipe try again what others may have made possible. It reports whether there was something.
func (m *model) again() bool {
	yes := !m.stopped && (m.held && len(m.posted) == 0 || m.passing)
	if m.pipe.Busy() != yes {
		m.t.Fatalf("the pipe is busy: %v; held: %v, posted: %v, busy when it registered: %v",
			!yes, m.held, m.posted, m.passing)
	}
	if yes {
		m.pipe.Again()
		m.held = m.held && len(m.posted) > 0
		m.starved, m.passing = m.starved && !m.passing, false
	}
	return yes
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
		if m.begin() || m.step != nil {
			m.finish(fine, 0)
			progress = true
		}
		if !progress && len(m.posted) > 0 {
			m.completes(m.posted[0], nil)
			progress = true
		}
		if !progress && !m.again() {
			m.t.Fatalf("nothing is under way, and the transfer not over: %+v", m.pipe.Stats())
		}
	}
	sent := m.sent()
	if got := m.pipe.Stats().SentBytes; got != sent {
		m.t.Fatalf("%d bytes sent, says the pipe: %d", sent, got)
	}
	if m.pipe.Err() == nil && sent != m.bytes || sent > m.bytes || len(m.registered)+len(m.posted) > 0 {
		m.t.Fatalf("at the end %d of %d bytes are sent, %v registered, %v posted: %v",
			sent, m.bytes, m.registered, m.posted, m.pipe.Err())
	}
}

func oneOf[T any](random *rand.Rand, values ...T) T { return values[random.IntN(len(values))] }

func TestTransfersAgainstAModel(t *testing.T) {
	testwait.Bound(t)
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		for i := range uint64(20) {
			m := newModel(t, rand.New(rand.NewPCG(seed, i)))
			for range 500 {
				m.event()
				m.checkBounds()
			}
			m.drain()
		}
	})
}

// event lets one thing happen, if it can.
func (m *model) event() {
	switch kind := m.random.IntN(100); {
	case kind < 45:
		m.begin()
	case kind < 90:
		if m.step == nil {
			return
		}
		outcome := fine
		if m.random.Float64() < m.faults {
			outcome = oneOf(m.random, passing, busy, fatal)
		}
		m.finish(outcome, m.random.Int64())
	case kind < 97:
		if len(m.posted) == 0 || m.random.Float64() > m.speed {
			return
		}
		var err error
		if m.random.Float64() < m.faults/10 {
			err = errDevice
		}
		m.completes(m.posted[m.random.IntN(len(m.posted))], err)
	case kind < 99:
		m.again()
	case m.random.Float64() < m.faults/10:
		m.pipe.Stop(errDevice)
		m.stopped = true
	}
}

// What the device did not take goes first once it has room.
func TestABusyDeviceIsAskedAgainInOrder(t *testing.T) {
	testwait.Bound(t)
	p, err := pipe.New(3000, pipe.Shape{Source: pipe.Map, ChunkBytes: 1000, Depth: 3, Ahead: 3})
	if err != nil {
		t.Fatal(err)
	}
	var first, second pipe.Step
	for step, ok := p.Next(); ok; step, ok = p.Next() {
		switch {
		case step.Kind != pipe.Post:
			p.Done(step, step.Chunk.Len, nil)
		case first == pipe.Step{}:
			first = step
			p.Done(step, 0, nil)
		case second == pipe.Step{}:
			second = step
			p.Done(step, 0, verbs.ErrBusy)
		default:
			t.Fatalf("%+v, before anything has completed", step)
		}
	}
	p.Completed(first.Chunk, nil)
	if again, ok := p.Next(); !ok || again != second || second.Chunk.At != 1000 {
		t.Errorf("%+v, %v; want %+v", again, ok, second)
	}
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
		step, ok := p.Next()
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
	for _, s := range []pipe.Shape{
		{Source: 2, Depth: 1}, {ChunkBytes: -1, Depth: 1}, {}, {Depth: 1, Ahead: 2}, {Depth: 1, Ahead: -1},
	} {
		if _, err := pipe.New(1, s); err == nil {
			t.Errorf("%+v is a shape", s)
		}
	}
}
