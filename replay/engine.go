package replay

import (
	"context"

	"pinwheel/mem"
	"pinwheel/trace"
)

// Every rank has three actors. Releases of pages come first at the same
// instant, so that what is unpinned exactly when something else is pinned
// does not count twice.
const (
	pinActor = iota
	commActor
	helperActor
	actorKinds
)

// engine is one pass over a trace: all ranks under one policy.
type engine struct {
	opt    *Options
	file   *trace.File
	ranks  []*rank
	agenda *agenda
	match  *matcher
	comms  communicators
	live   int // ranks that have not finished
	ready  int // of them, those that have a turn to come; the others are blocked
	// pipelined: registration happens during transfers, so paths are told of them.
	pipelined bool
	// largestPages is the size of the largest buffer that was needed.
	largestPages uint64
	steps        uint64
}

// path is what a policy does on the communication path of one rank. Times
// are virtual; a returned stall is how long the path is held up.
type path interface {
	// acquire makes a buffer ready for a transfer posted at t.
	acquire(t int64, n *need, h *hold) (stallNs int64, err error)
	// release ends a use at t, when its transfer has completed.
	release(t int64, h *hold) (int64, error)
	// transferring tells when the transfer of a held buffer is on the wire.
	transferring(h *hold, start, end int64)
	// close ends the rank at t.
	close(t int64) error
}

// hold is a buffer from post to completion.
type hold struct {
	need   need
	needNs int64 // when it was needed
	ref    sref
	id     mem.RegionID
	pages  uint64 // of the region
	piped  bool   // all chunks are registered (policy pipeline)
}

func newEngine(opt *Options, file *trace.File) (*engine, error) {
	n := file.Header().Ranks
	e := &engine{
		opt: opt, file: file, agenda: newAgenda(actorKinds * n), match: newMatcher(n),
		comms: communicators{byMembers: map[string]*communicator{}}, live: n,
	}
	for i := range n {
		p, err := newProgram(file, i)
		if err != nil {
			return nil, err
		}
		e.ranks = append(e.ranks, &rank{id: i, prog: p, comms: map[int32]*localComm{}, requests: map[uint32]*request{}})
	}
	return e, nil
}

func (e *engine) actor(kind, rank int) int32 { return int32(kind*len(e.ranks) + rank) }

// wake lets a blocked communication path go on at t.
func (e *engine) wake(r *rank, t int64) {
	a := e.actor(commActor, r.id)
	if e.agenda.at[a] == never {
		e.ready++
	}
	e.agenda.set(a, t)
}

// run simulates until every rank has finished.
func (e *engine) run(ctx context.Context) error {
	for _, r := range e.ranks {
		if err := e.nextCall(r, 0); err != nil {
			return err
		}
	}
	n := len(e.ranks)
	for {
		a, t := e.agenda.first()
		if e.live == 0 && (t == never || int(a)/n != pinActor) {
			break
		}
		if e.live > 0 && e.ready == 0 {
			if err := e.stuck(); err != nil {
				return err
			}
			continue
		}
		if e.steps++; e.steps&0xffff == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			if e.opt.progress != nil {
				e.opt.progress(e.records())
			}
		}
		r := e.ranks[int(a)%n]
		var err error
		switch int(a) / n {
		case pinActor:
			e.agenda.set(a, r.pins.apply(t))
		case commActor:
			e.agenda.set(a, never)
			e.ready--
			err = e.comm(r, t)
		case helperActor:
			var next int64
			next, err = r.helper.step(t)
			e.agenda.set(a, next)
		}
		if err != nil {
			return err
		}
	}
	return e.leftovers()
}

func (e *engine) records() (n int64) {
	for _, r := range e.ranks {
		n += r.prog.records
	}
	return n
}
