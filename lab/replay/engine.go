package replay

import (
	"context"
	"errors"

	"pinwheel/internal/usage"
	"pinwheel/lab/replay/pinned"
	"pinwheel/mem"
	"pinwheel/regcache"
)

// Every rank has three actors, and every node one if its helpers share cores.
// Changes of what is pinned come first at the same instant, so that what is
// unpinned exactly when something else is pinned does not count twice.
const (
	pinActor = iota
	commActor
	helperActor
	actorKinds

	nodeActor = actorKinds // the nodes come after all ranks
)

// engine is one pass over a trace: all ranks under one policy.
type engine struct {
	opt   *Options
	now   int64
	ranks []*rank
	nodes []*helperNode // with Options.Cores, of a policy with helpers
	queue *eventQueue
	match *matcher
	comms communicators
	// incomplete: the trace says that it lacks calls, so others may wait in vain for them.
	incomplete bool
	live       int // ranks that have not finished
	ready      int // of them, those that have a turn to come; the others are blocked
	// pipelined: registration happens during transfers, so paths are told of them.
	pipelined bool
	// largestPages is the size of the largest buffer that was needed.
	largestPages uint64
}

// path is what a policy does on the communication path of one rank. Times
// are virtual; a stall is how long the path is held up.
type path interface {
	// acquire makes a buffer ready for a transfer to be posted at t.
	acquire(t int64, n *need, u *bufferUse) (stallNs int64, err error)
	// transferring tells when the transfer of a held buffer is on the wire.
	transferring(u *bufferUse, startNs, endNs int64)
	// release ends a use at t, when its transfer has completed.
	release(t int64, u *bufferUse) (stallNs int64, err error)
	// unmapped tells at t that the program has unmapped, moved or discarded pages: buffers there have ended.
	unmapped(t int64, r mem.Range) (stallNs int64, err error)
}

// bufferUse is the use of a buffer, from post to completion.
type bufferUse struct {
	need   need
	needNs int64        // when it was needed
	ref    regcache.Ref // of a cachedPath
	missed bool         // of a cachedPath: it had to be registered
	waited bool         // of a cachedPath: the helper was registering it
	slot   int32        // of a feed
	piped  bool         // of a pipelinePath: all chunks are registered
}

func newEngine(opt *Options, job Job) (*engine, error) {
	n := job.Ranks()
	e := &engine{
		opt: opt, queue: newEventQueue(actorKinds*n + n), match: newMatcher(n),
		comms: communicators{byKey: map[string]*communicator{}}, live: n,
	}
	node := opt.nodeOf(n)
	for i := range n {
		p, err := newProgram(job, i)
		if err != nil {
			return nil, err
		}
		e.incomplete = e.incomplete || len(p.stream.LeftOut()) > 0
		r := &rank{id: i, prog: p, comms: map[int32]*localComm{}, requests: map[uint32]*request{}}
		r.x = expansion{threshold: opt.ThresholdBytes, pairwise: opt.AlltoallPairwise, node: node, rank: i}
		r.usage = usage.New(opt.SeriesFromNs, opt.SeriesToNs)
		r.pages = pinned.NewCounter(&e.now, func(at int64) { e.queue.set(e.actor(pinActor, i), at) })
		r.pages.AddUsage(&r.usage)
		e.ranks = append(e.ranks, r)
	}
	return e, nil
}

func (e *engine) actor(kind, rank int) int32 { return int32(kind*len(e.ranks) + rank) }

// wake gives a communication path its next turn.
func (e *engine) wake(r *rank, t int64) {
	a := e.actor(commActor, r.id)
	if e.queue.at[a] == never {
		e.ready++
	}
	e.queue.set(a, t)
}

// close gives up what the paths hold outside the Go heap.
func (e *engine) close() error {
	var errs []error
	for _, r := range e.ranks {
		if c, ok := r.path.(*cachedPath); ok {
			errs = append(errs, c.cache.Close())
		}
	}
	return errors.Join(errs...)
}

// progressSteps is how many steps pass between looks at the context and
// reports of progress.
const progressSteps = 1 << 16

// run simulates until every rank has finished. report, if set, is told now
// and then how many records have been read.
func (e *engine) run(ctx context.Context, report func(records int64)) error {
	for _, r := range e.ranks {
		if err := e.nextCall(r, 0); err != nil {
			return err
		}
	}
	for step := 1; ; step++ {
		if step%progressSteps == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			if report != nil {
				report(e.records())
			}
		}
		for e.live > 0 && e.ready == 0 {
			if err := e.stuck(); err != nil {
				return err
			}
		}
		more, err := e.step()
		if err != nil {
			return err
		}
		if !more {
			return e.leftovers()
		}
	}
}

// maxTimeNs bounds simulated time, so that sums of two times fit into an int64.
const maxTimeNs = 1 << 62

// step gives the next actor its turn. After the last rank has finished only
// the accounts go on, for a policy that keeps them late.
func (e *engine) step() (more bool, err error) {
	a, t := e.queue.first()
	n := len(e.ranks)
	kind, r := int(a)/n, e.ranks[int(a)%n]
	if e.live == 0 && (kind != pinActor || t == never) {
		return false, nil
	}
	if t < 0 || t > maxTimeNs {
		return false, errors.New("the simulated time exceeds 146 years: the costs, the network or the times of the trace are out of all proportion")
	}
	e.now = t
	switch kind {
	case pinActor:
		e.queue.set(a, r.pages.Apply())
	case commActor:
		e.queue.set(a, never)
		e.ready--
		err = e.comm(r, t)
	case helperActor:
		e.queue.set(a, e.helperTurn(r, t))
	case nodeActor:
		e.queue.set(a, e.nodes[r.id].look(e, t))
	}
	return true, err
}

func (e *engine) records() (n int64) {
	for _, r := range e.ranks {
		n += r.prog.records
	}
	return n
}
