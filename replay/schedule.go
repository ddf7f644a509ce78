package replay

import (
	"context"
	"sync"

	"pinwheel/trace"
)

// moment is something that one rank does, on the timeline on which no
// registration costs anything.
type moment struct {
	atNs int64
	kind momentKind
	slot int32 // of the buffer in use: the same at its release as when it was acquired
	need need
}

type momentKind uint8

const (
	acquireMoment momentKind = iota
	releaseMoment
	endMoment // finalize
)

const (
	momentChunk = 4096
	// momentChunks bounds how far the simulation is ahead of the replay: 1 M
	// moments, 64 MiB. The traces of the project fit, so that nothing is
	// simulated while they are replayed.
	momentChunks = 256
)

// schedule hands the moments of one rank from a simulation to a replay in
// real time, in chunks. It is the path of that rank.
type schedule struct {
	freePath
	out   chan []moment
	ready chan struct{} // closed once the simulation is as far ahead as it may be
	once  sync.Once
	chunk []moment
	done  <-chan struct{} // the replay has given up
	slots []int32         // free
	used  int32           // slots that exist
}

// freePath is a communication path on which registration costs nothing.
type freePath struct{}

func (freePath) acquire(int64, *need, *hold) (int64, error) { return 0, nil }
func (freePath) transferring(*hold, int64, int64)           {}
func (freePath) release(int64, *hold) (int64, error)        { return 0, nil }

func (s *schedule) acquire(t int64, n *need, h *hold) (int64, error) {
	if k := len(s.slots); k > 0 {
		h.slot, s.slots = s.slots[k-1], s.slots[:k-1]
	} else {
		h.slot = s.used
		s.used++
	}
	h.need = *n
	return 0, s.put(t, moment{kind: acquireMoment, slot: h.slot, need: *n})
}

func (s *schedule) release(t int64, h *hold) (int64, error) {
	s.slots = append(s.slots, h.slot)
	return 0, s.put(t, moment{kind: releaseMoment, slot: h.slot, need: h.need})
}

func (s *schedule) put(t int64, m moment) error {
	m.atNs = t
	s.chunk = append(s.chunk, m)
	if len(s.chunk) < momentChunk {
		return nil
	}
	return s.flush()
}

func (s *schedule) flush() error {
	select {
	case s.out <- s.chunk:
	default:
		s.once.Do(func() { close(s.ready) })
		select {
		case s.out <- s.chunk:
		case <-s.done:
			return context.Canceled
		}
	}
	s.chunk = make([]moment, 0, momentChunk)
	return nil
}

// simulate runs the no-stall timeline of a trace with paths of the caller's
// choice, without any registration.
func simulate(ctx context.Context, o *Options, file *trace.File, paths func(*rank) path) (*engine, error) {
	e, err := newEngine(o, file)
	if err != nil {
		return nil, err
	}
	for _, r := range e.ranks {
		r.path = paths(r)
	}
	return e, e.run(ctx, nil)
}

// onlyRank gives one rank a path and the others none.
func onlyRank(id int, p path) func(*rank) path {
	return func(r *rank) path {
		if r.id == id {
			return p
		}
		return freePath{}
	}
}

// startSchedule begins to simulate; next yields the moments of a rank, and
// an error if the simulation fails. It ends when ctx is done.
func startSchedule(ctx context.Context, o *Options, file *trace.File, rank int) (next func() ([]moment, error)) {
	s := &schedule{out: make(chan []moment, momentChunks), ready: make(chan struct{}), done: ctx.Done(), chunk: make([]moment, 0, momentChunk)}
	failed := make(chan error, 1)
	go func() {
		e, err := simulate(ctx, o, file, onlyRank(rank, s))
		if err == nil {
			err = s.put(e.ranks[rank].endNs, moment{kind: endMoment})
		}
		if err == nil && len(s.chunk) > 0 {
			err = s.flush()
		}
		failed <- err
		close(s.out)
		s.once.Do(func() { close(s.ready) })
	}()
	<-s.ready
	return func() ([]moment, error) {
		if chunk, ok := <-s.out; ok {
			return chunk, nil
		}
		return nil, <-failed
	}
}
