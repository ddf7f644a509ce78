package lease

import (
	"container/ring"
	"errors"
	"fmt"
	"math"

	"pinwheel/comm/vmmc/internal/protocol"
	"pinwheel/mem"
	"pinwheel/predictor"
	"pinwheel/schedule"
	"pinwheel/verbs"
)

// HolderDriver tells the exporter what a Holder decides. Its methods are called in the middle of those of the
// Holder: they must neither call it nor block.
type HolderDriver interface {
	// Renew asks for the lease of an import. The exporter answers with Granted, sooner or later.
	Renew(number uint64)
	// Yield gives a lease back.
	Yield(number uint64)
}

// HolderOptions configure a Holder.
type HolderOptions struct {
	// Costs are what a renewal takes, with the way to the exporter and back, and what a yield takes. The first is
	// corrected by what renewals take.
	Costs verbs.Costs
	// IdleNs is how long a lease may be unused at most, whatever is predicted.
	IdleNs int64
}

// renewals is how many may be under way at a time.
const renewals = 64

// Holder has the leases of the imports of one connection. Times are nanoseconds of its driver's clock.
type Holder struct {
	driver    HolderDriver
	idleNs    int64
	scheduler *schedule.Scheduler
	leases    map[mem.RegionID]*held
	unused    ring.Ring        // leases held without a message on its way; the first has had none for longest
	holding   int              // leases
	ended     []schedule.Event // messages of which the scheduler has not heard so far
}

// maxEnded is how many messages the scheduler hears of at a time. More are lost: there is enough to learn from.
const maxEnded = 1024

type state uint8

const (
	absent state = iota
	asked        // for a renewal, which the exporter has not granted so far
	holding
)

// held is the lease of an import.
type held struct {
	id       mem.RegionID
	pages    uint64
	state    state
	recalled bool // to be yielded as soon as it is granted, and no message is on its way
	using    int  // messages on their way
	askedNs  int64
	againNs  int64            // not to be asked for before: it was refused
	renewal  *schedule.Action // of the scheduler, that the exporter has not granted so far
	unused   ring.Ring        // its place in Holder.unused; the Value is the held
	yieldNs  int64            // when to yield it at the latest, while it is there
}

// errRefused is why a renewal came to nothing, for the scheduler.
var errRefused = errors.New("the exporter can't register it")

// NewHolder returns a Holder without imports.
func NewHolder(d HolderDriver, o HolderOptions) *Holder {
	return &Holder{
		driver: d, idleNs: o.IdleNs, leases: map[mem.RegionID]*held{},
		scheduler: schedule.NewScheduler(predictor.NewPinwheel(predictor.Options{Window: 2}), schedule.SchedulerOptions{
			Costs: o.Costs, KeepUnknown: true, Cost: 1, KeepNs: keepNs, Workers: renewals, Concurrent: true, ItemNs: itemNs,
		}),
	}
}

// itemNs is how late the driver's timer may come. That of a Go program that sleeps is late by up to a millisecond, the
// unit of epoll_wait(2).
const itemNs = 1_000_000

// keepNs is for how long a lease is worth keeping to save a message that waits: much longer than HolderOptions.IdleNs
// mostly is, after which it is yielded anyway.
const keepNs = 10_000_000_000

// Add adds an import, without its lease. A number is used once.
func (h *Holder) Add(number, bytes uint64) {
	l := &held{id: mem.RegionID(number), pages: (bytes + mem.PageSize - 1) / mem.PageSize}
	l.unused.Value = l
	h.leases[l.id] = l
}

// Remove removes an import that has no message on its way. If its lease was asked for, the answer is ignored.
func (h *Holder) Remove(number uint64) {
	id := mem.RegionID(number)
	l := h.leases[id]
	if l == nil {
		return
	}
	if l.state == holding {
		h.holding--
	}
	if l.state != absent {
		h.driver.Yield(number)
	}
	h.renewed(l, l.askedNs, schedule.ErrGone)
	delete(h.leases, id)
	l.leaveUnused()
	h.scheduler.Forget(id)
}

// Use begins a message, and tells whether there is a lease for it, which stays until Complete. Else the message has
// to go another way, and a lease is on its way. It makes no system call and does not predict.
func (h *Holder) Use(number uint64, nowNs int64) (leased bool) {
	id := mem.RegionID(number)
	l := h.leases[id]
	switch {
	case l.state == holding && !l.recalled:
		l.using++
		l.leaveUnused()
		return true
	case l.state == absent && nowNs >= l.againNs:
		h.scheduler.Missed(schedule.Miss{Region: id, NeedNs: nowNs}, nowNs)
		h.renew(l, nowNs)
	}
	return false
}

// Leased tells whether a message that begins has a lease.
func (h *Holder) Leased(number uint64) bool {
	l := h.leases[mem.RegionID(number)]
	return l != nil && l.state == holding && !l.recalled
}

// Asked tells whether a lease was asked for, and there is no answer so far.
func (h *Holder) Asked(number uint64) bool {
	l := h.leases[mem.RegionID(number)]
	return l != nil && l.state == asked
}

// Complete ends a message that Use began: one with a lease has arrived, and is nowhere on its way any more. u.StartNs
// is when Use was called. The next Next learns from it.
func (h *Holder) Complete(number uint64, leased bool, u predictor.Use, nowNs int64) {
	id := mem.RegionID(number)
	l := h.leases[id]
	if l == nil {
		return // it went another way, and its import was removed
	}
	u.Region = id
	if len(h.ended) < maxEnded {
		h.ended = append(h.ended, schedule.Event{Use: u, Pages: l.pages})
	}
	if !leased {
		return
	}
	if l.using--; l.using == 0 {
		h.enterUnused(l, nowNs)
		h.giveBack(l, nowNs)
	}
}

// Granted takes the answer to a renewal.
func (h *Holder) Granted(number uint64, nowNs int64) error {
	l, err := h.answered(number)
	if l == nil {
		return err
	}
	l.state = holding
	h.holding++
	h.enterUnused(l, nowNs)
	h.renewed(l, nowNs, nil)
	h.giveBack(l, nowNs)
	return nil
}

// Refused takes the other answer to a renewal: the exporter can't register its export at present. The lease is asked
// for again after HolderOptions.IdleNs at the soonest.
func (h *Holder) Refused(number uint64, nowNs int64) error {
	l, err := h.answered(number)
	if l == nil {
		return err
	}
	l.state, l.recalled, l.againNs = absent, false, nowNs+h.idleNs
	h.renewed(l, nowNs, errRefused)
	return nil
}

// answered returns the lease that the exporter answers for; nil if its import was removed meanwhile.
func (h *Holder) answered(number uint64) (*held, error) {
	l := h.leases[mem.RegionID(number)]
	if l != nil && l.state != asked {
		return nil, fmt.Errorf("%w: an answer for the lease of import %d, which was not asked for", protocol.ErrProtocol, number)
	}
	return l, nil
}

// renewed tells the scheduler what became of a renewal, if that was its own.
func (h *Holder) renewed(l *held, nowNs int64, err error) {
	if l.renewal != nil {
		h.scheduler.Done(*l.renewal, l.askedNs, nowNs, err)
		l.renewal = nil
	}
}

// Recalled hears that the exporter needs the room. The lease may have been yielded already. It may also be on its way:
// what is to be registered takes longer than the question whether it is needed.
func (h *Holder) Recalled(number uint64, nowNs int64) {
	if l := h.leases[mem.RegionID(number)]; l != nil && l.state != absent {
		l.recalled = true
		h.giveBack(l, nowNs)
	}
}

// giveBack yields a lease that was recalled, if it is there and not in use.
func (h *Holder) giveBack(l *held, nowNs int64) {
	if l.recalled && l.using == 0 && l.state == holding {
		h.yield(l, nowNs)
	}
}

// yield gives a lease back, and tells the scheduler.
func (h *Holder) yield(l *held, nowNs int64) {
	l.state, l.recalled = absent, false
	h.holding--
	l.leaveUnused()
	h.driver.Yield(uint64(l.id))
	h.scheduler.Done(schedule.Action{Kind: schedule.Deregister, Region: l.id}, nowNs, nowNs+1, nil)
}

func (h *Holder) renew(l *held, nowNs int64) {
	l.state, l.askedNs = asked, nowNs
	h.driver.Renew(uint64(l.id))
}

// enterUnused puts a lease behind those that were unused before. All may be so for the same time, so they stay in the
// order in which they are to be yielded.
func (h *Holder) enterUnused(l *held, nowNs int64) {
	l.yieldNs = nowNs + h.idleNs
	h.unused.Prev().Link(&l.unused)
}

// leaveUnused takes a lease out of Holder.unused, if it is there.
func (l *held) leaveUnused() { l.unused.Prev().Unlink(1) }

// Busy tells whether there is a lease, or the scheduler has to hear of messages.
func (h *Holder) Busy() bool { return h.holding > 0 || len(h.ended) > 0 }

// Next learns, does what is due, and returns when there is more to do; math.MaxInt64 stands for never. Messages that
// end meanwhile may change that. Its driver need not call it for each of them: while there are some, a millisecond
// later is soon enough.
func (h *Holder) Next(nowNs int64) (untilNs int64) {
	for i := range h.ended {
		if e := &h.ended[i]; h.leases[e.Region] != nil {
			h.scheduler.Observe(*e, nowNs)
		}
	}
	h.ended = h.ended[:0]
	for {
		switch a := h.scheduler.Next(nowNs); a.Kind {
		case schedule.Register:
			h.renewAhead(&a, nowNs)
		case schedule.Deregister:
			h.release(&a, nowNs)
		default:
			if w := a.Waiting(nowNs); w.DueNs > nowNs { // else there is more to do
				return min(w.DueNs, w.ReviewNs, h.yieldUnused(nowNs))
			}
		}
	}
}

// renewAhead carries out a registration of the scheduler.
func (h *Holder) renewAhead(a *schedule.Action, nowNs int64) {
	l := h.leases[a.Region]
	switch {
	case l.state == holding:
		h.scheduler.Done(*a, nowNs, nowNs, nil)
		return
	case l.state == absent && nowNs < l.againNs:
		h.scheduler.Done(*a, nowNs, nowNs, errRefused)
		return
	case l.state == absent:
		h.renew(l, nowNs)
	}
	l.renewal = a
}

// release carries out a deregistration of the scheduler.
func (h *Holder) release(a *schedule.Action, nowNs int64) {
	l := h.leases[a.Region]
	switch {
	case l.state == asked || l.using > 0:
		h.scheduler.Done(*a, nowNs, nowNs, schedule.ErrInUse)
	case l.state == absent:
		h.scheduler.Done(*a, nowNs, nowNs, nil)
	default:
		h.yield(l, nowNs)
	}
}

// yieldUnused yields the leases that were not used for too long, and returns when the next one is.
func (h *Holder) yieldUnused(nowNs int64) (nextNs int64) {
	for {
		l, any := h.unused.Next().Value.(*held)
		switch {
		case !any:
			return math.MaxInt64
		case l.yieldNs > nowNs:
			return l.yieldNs
		}
		h.yield(l, nowNs)
	}
}
