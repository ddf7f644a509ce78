package replay

import (
	"context"
	"sync"

	"pinwheel/mem"
	"pinwheel/predictor"
	"pinwheel/trace"
)

// Event is something that one rank does on the timeline on which no
// registration costs anything.
type Event struct {
	AtNs     int64
	Kind     EventKind
	Receives bool         // the buffer is written, not read
	Op       predictor.Op // of the call that uses the buffer
	Slot     int32        // of the use: the same when it ends as when it began; those of ended uses are taken again
	Range    mem.Range    // of the buffer
	Site     *[predictor.MaxFrames]uint64
}

// EventKind says what happens at an Event.
type EventKind uint8

const (
	UseBegins EventKind = iota // a buffer must be registered
	UseEnds                    // its transfer has completed
	Unmapped                   // buffers in Range have ended; pages of others may be among them
	RankEnds                   // finalize; the last event, without a buffer
)

const (
	eventChunk = 4096
	// eventChunks bounds how far the simulation is ahead of the replay: 1 M
	// events, 48 MiB. The traces of the project fit, so that nothing is
	// simulated while they are replayed.
	eventChunks = 256
)

// feed hands the events of one rank from a simulation to a replay in
// real time, in chunks. It is the path of that rank.
type feed struct {
	freePath
	out   chan []Event
	ready chan struct{} // closed once the simulation is as far ahead as it may be
	once  sync.Once
	chunk []Event
	done  <-chan struct{} // the replay has given up
	slots []int32         // free
	used  int32           // slots that exist
	sites callSites
}

// freePath is a communication path on which registration costs nothing.
type freePath struct{}

func (freePath) acquire(int64, *need, *bufferUse) (int64, error) { return 0, nil }
func (freePath) transferring(*bufferUse, int64, int64)           {}
func (freePath) release(int64, *bufferUse) (int64, error)        { return 0, nil }
func (freePath) unmapped(int64, mem.Range) (int64, error)        { return 0, nil }

func (s *feed) acquire(t int64, n *need, u *bufferUse) (int64, error) {
	if k := len(s.slots); k > 0 {
		u.slot, s.slots = s.slots[k-1], s.slots[:k-1]
	} else {
		u.slot = s.used
		s.used++
	}
	u.need = *n
	return 0, s.use(t, UseBegins, u)
}

func (s *feed) release(t int64, u *bufferUse) (int64, error) {
	s.slots = append(s.slots, u.slot)
	return 0, s.use(t, UseEnds, u)
}

func (s *feed) use(t int64, kind EventKind, u *bufferUse) error {
	n := &u.need
	return s.put(Event{AtNs: t, Kind: kind, Receives: n.receives(), Op: predictor.Op(n.op), Slot: u.slot, Range: n.rng, Site: s.sites.frames(n.stack)})
}

func (s *feed) unmapped(t int64, r mem.Range) (int64, error) {
	return 0, s.put(Event{AtNs: t, Kind: Unmapped, Range: r})
}

func (s *feed) put(e Event) error {
	s.chunk = append(s.chunk, e)
	if len(s.chunk) < eventChunk {
		return nil
	}
	return s.flush()
}

func (s *feed) flush() error {
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
	s.chunk = make([]Event, 0, eventChunk)
	return nil
}

// simulate runs the no-stall timeline of a trace with paths of the caller's
// choice, without any registration.
func simulate(ctx context.Context, o *Options, file *trace.File, paths func(*rank) path) (*engine, error) {
	e, err := newEngine(o, recorded{file})
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

// Events begins to simulate the timeline on which registration costs nothing.
// next returns the following events of a rank, in order of time, and an error
// if the simulation fails; the last event is RankEnds. The caller must cancel ctx
// when it needs no more. next is for one goroutine.
func Events(ctx context.Context, o *Options, file *trace.File, id int) (next func() ([]Event, error)) {
	s := &feed{out: make(chan []Event, eventChunks), ready: make(chan struct{}), done: ctx.Done(), chunk: make([]Event, 0, eventChunk)}
	failed := make(chan error, 1)
	go func() {
		e, err := simulate(ctx, o, file, func(r *rank) path {
			if r.id != id {
				return freePath{}
			}
			s.sites.stream = r.prog.stream
			return s
		})
		if err == nil {
			err = s.put(Event{AtNs: e.ranks[id].endNs, Kind: RankEnds})
		}
		if err == nil && len(s.chunk) > 0 {
			err = s.flush()
		}
		failed <- err
		close(s.out)
		s.once.Do(func() { close(s.ready) })
	}()
	<-s.ready
	return func() ([]Event, error) {
		if chunk, ok := <-s.out; ok {
			return chunk, nil
		}
		return nil, <-failed
	}
}
