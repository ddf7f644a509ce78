package virtual

import (
	"fmt"
	"math"
	"slices"

	"pinwheel/comm/files/pipe"
)

// Transfer is a file that is sent to one client, from virtual time 0.
type Transfer struct {
	Bytes        int64
	Shape        pipe.Shape
	Registration Registration
	// Kept is set if the policy keeps registrations, and this transfer finds those that it needs.
	Kept bool
}

// Result is what became of a transfer.
type Result struct {
	EndNs           float64
	ProcessorNs     float64
	WireNs          float64 // while a message of the transfer was on the wire
	PeakPinnedBytes int64   // of what is in use
	pipe.Stats
}

// Run does transfers at the same time. It fails if a shape makes no sense.
func Run(c Computer, transfers []Transfer) ([]Result, error) {
	s := simulation{computer: c}
	s.computer.CopyCacheBytes /= float64(max(len(transfers), 1)) // they share the cache, too
	for i := range transfers {
		p, err := pipe.New(transfers[i].Bytes, transfers[i].Shape)
		if err != nil {
			return nil, err
		}
		slots, slotBytes := p.Ring()
		t := &transfer{Transfer: &transfers[i], pipe: p, ringBytes: int64(slots) * slotBytes}
		s.transfers = append(s.transfers, t)
		s.threads = append(s.threads, &thread{transfer: t})
	}
	s.run()
	results := make([]Result, len(transfers))
	for i, t := range s.transfers {
		if !t.pipe.Finished() {
			return nil, fmt.Errorf("virtual: transfer %d of %d bytes stays at %+v", i, t.Bytes, t.pipe.Stats())
		}
		t.result.Stats = t.pipe.Stats()
		results[i] = t.result
	}
	return results, nil
}

type transfer struct {
	*Transfer
	pipe        *pipe.Pipe
	ringBytes   int64
	pinnedBytes int64
	result      Result
}

type thread struct {
	transfer *transfer
	busy     bool
	step     pipe.Step
	job      job
}

// message is a chunk on the wire, or behind those before it.
type message struct {
	transfer *transfer
	chunk    pipe.Chunk
	job      job
	atNs     float64 // of its completion
}

type simulation struct {
	computer    Computer
	nowNs       float64
	transfers   []*transfer
	threads     []*thread
	waiting     []*thread // for a processor, the first come first
	running     []*thread
	wire        []*message // the first is on it
	completions []*message // in the order of their times
}

// epsilonNs is a duration that is over.
const epsilonNs = 1e-6

func (s *simulation) run() {
	for {
		s.begin()
		step := s.nextNs()
		if math.IsInf(step, 1) {
			return
		}
		s.advance(step)
		s.end()
	}
}

// begin gives idle threads what they have to do, and processors to those that wait.
func (s *simulation) begin() {
	for _, t := range s.threads {
		if t.busy {
			continue
		}
		step, ok := t.transfer.pipe.Next()
		if !ok {
			continue
		}
		t.busy, t.step, t.job = true, step, s.computer.step(t.transfer.Transfer, step, t.transfer.ringBytes)
		if step.Kind == pipe.Register {
			t.transfer.pinnedBytes += step.Chunk.Len
			t.transfer.result.PeakPinnedBytes = max(t.transfer.result.PeakPinnedBytes, t.transfer.pinnedBytes)
		}
		s.waiting = append(s.waiting, t)
	}
	for len(s.waiting) > 0 && len(s.running) < s.computer.Processors {
		s.running = append(s.running, s.waiting[0])
		s.waiting = s.waiting[1:]
	}
}

// speed is how fast that goes which uses the bus.
func (s *simulation) speed() float64 {
	demand := 0.0
	for j := range s.jobs {
		demand += j.busBytes
	}
	return min(1, s.computer.BusBytesPerSec/1e9/max(demand, math.SmallestNonzeroFloat64))
}

// jobs yields what is done at this time.
func (s *simulation) jobs(yield func(*job) bool) {
	for _, t := range s.running {
		if !yield(&t.job) {
			return
		}
	}
	if len(s.wire) > 0 {
		yield(&s.wire[0].job)
	}
}

func (j *job) speed(bus float64) float64 {
	if j.busBytes > 0 {
		return bus
	}
	return 1
}

// nextNs returns how long nothing changes.
func (s *simulation) nextNs() float64 {
	step, bus := math.Inf(1), s.speed()
	for j := range s.jobs {
		step = min(step, j.leftNs/j.speed(bus))
	}
	if len(s.completions) > 0 {
		step = min(step, s.completions[0].atNs-s.nowNs)
	}
	return max(step, 0)
}

func (s *simulation) advance(ns float64) {
	bus := s.speed()
	s.nowNs += ns
	for j := range s.jobs {
		j.leftNs -= ns * j.speed(bus)
	}
	for _, t := range s.running {
		t.transfer.result.ProcessorNs += ns
	}
	if len(s.wire) > 0 {
		s.wire[0].transfer.result.WireNs += ns
	}
}

// end ends what is over.
func (s *simulation) end() {
	var over []*thread
	s.running = slices.DeleteFunc(s.running, func(t *thread) bool {
		if t.job.leftNs > epsilonNs {
			return false
		}
		over = append(over, t)
		return true
	})
	for _, t := range over {
		s.done(t)
	}
	if len(s.wire) > 0 && s.wire[0].job.leftNs <= epsilonNs {
		m := s.wire[0]
		m.atNs = s.nowNs + s.computer.CompletionNs
		s.wire, s.completions = s.wire[1:], append(s.completions, m)
	}
	for len(s.completions) > 0 && s.completions[0].atNs <= s.nowNs+epsilonNs {
		m := s.completions[0]
		s.completions = s.completions[1:]
		m.transfer.pipe.Completed(m.chunk, nil)
	}
}

func (s *simulation) done(t *thread) {
	t.busy = false
	c := t.step.Chunk
	t.transfer.pipe.Done(t.step, c.Len, nil)
	switch t.step.Kind {
	case pipe.Post:
		s.wire = append(s.wire, &message{transfer: t.transfer, chunk: c, job: s.computer.message(c.Len)})
	case pipe.Release:
		t.transfer.pinnedBytes -= c.Len
	}
	t.transfer.result.EndNs = s.nowNs
}
