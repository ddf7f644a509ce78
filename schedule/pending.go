package schedule

import (
	"cmp"
	"errors"
	"slices"

	"pinwheel/mem"
)

// pending is what a Loop knows of actions that are still to be carried out.
type pending struct {
	decided   []Action // to be carried out in this order
	plannedNs int64    // when the next registration is to begin, as the Decider said last
	skipped   Action   // the last answer of the Decider, if a pause after failures kept it from being tried
	pauses    [Deregister + 1]backoff
	ids       []mem.RegionID // scratch
}

// maxBatch bounds how long a region waits, closed, for the deregistrations before its own.
const maxBatch = 16

// Next returns what to carry out now: a Register or a Deregister, or else until when to wait. If that has passed, there
// may be more to do: Next is to be asked again.
func (l *Loop) Next(nowNs int64) (a Action, w Waiting) {
	a, w = l.next(nowNs)
	if a.Kind != Register && a.Kind != Deregister {
		a.Kind = Idle
	}
	if retryNs := l.pauses[a.Kind].retryNs; nowNs < retryNs {
		return Action{}, l.skip(a, nowNs)
	}
	l.skipped = Action{}
	return a, w
}

// next returns the next action. A registration that is due waits for one deregistration at most.
func (l *Loop) next(nowNs int64) (a Action, w Waiting) {
	if first := len(l.decided) == 0; first || l.decided[0].Kind == Deregister {
		a, w = l.ask(nowNs)
		switch {
		case a.Kind == Register:
			return a, w
		case a.Kind == Deregister:
			l.decided = append(l.decided, a)
			if first && l.Prepare != nil && nowNs >= l.pauses[Deregister].retryNs {
				l.prepare(nowNs)
			}
		}
	}
	if len(l.decided) > 0 {
		a = l.decided[0]
		l.decided = slices.Delete(l.decided, 0, 1)
	}
	return a, w
}

// ask asks the Decider for an action, and notes when it plans the next registration.
func (l *Loop) ask(nowNs int64) (Action, Waiting) {
	a := l.Decider.Next(nowNs)
	w := a.Waiting(nowNs)
	// Sooner than a sleep can be trusted to end.
	early := w.DueNs > nowNs && w.DueNs != Never && l.Pacer.Near(nowNs, w.DueNs)
	if early {
		l.plannedNs = w.DueNs
		a = l.Decider.Next(w.DueNs)
		w = a.Waiting(nowNs)
	}
	switch {
	case a.Kind == Deregister:
		l.plannedNs = cmp.Or(a.DueNs, Never)
	case a.Kind == Register:
		if !early && l.plannedNs > nowNs && !l.Pacer.Near(nowNs, l.plannedNs) {
			l.plannedNs = Never // an event has made it due, and nobody has planned it
		}
	case w.DueNs > nowNs:
		l.plannedNs = w.DueNs
	}
	return a, w
}

// prepare asks what else the Decider wants deregistered now, besides the first, and has it prepared together.
func (l *Loop) prepare(nowNs int64) {
	l.ids = append(l.ids[:0], l.decided[0].Region)
	for len(l.ids) < maxBatch {
		a := l.Decider.Next(nowNs)
		if a.Kind == Register {
			l.decided = slices.Insert(l.decided, 1, a)
		}
		if a.Kind != Deregister || slices.Contains(l.ids, a.Region) {
			break
		}
		l.ids, l.decided = append(l.ids, a.Region), append(l.decided, a)
	}
	if len(l.ids) > 1 {
		l.Prepare(l.ids)
	}
}

// Began tells when a registration of Next begins, and returns how far that is from the planned moment, if it was planned.
func (l *Loop) Began(nowNs int64) (offNs int64, planned bool) {
	offNs, planned = nowNs-l.plannedNs, l.plannedNs != Never
	l.plannedNs = Never // those that follow it without a pause have no moment of their own
	return offNs, planned
}

// Done tells how an action of Next went that was carried out from startNs to endNs, and reports whether it failed: an
// error that is none of this package.
func (l *Loop) Done(a Action, startNs, endNs int64, err error) (failed bool) {
	if errors.Is(err, ErrAlready) {
		endNs, err = startNs, nil // it says nothing about costs
	}
	l.Decider.Done(a, startNs, endNs, err)
	switch {
	case err == nil && endNs > startNs:
		l.pauses[a.Kind] = backoff{}
	case errors.Is(err, ErrGone):
		l.Decider.Forget(a.Region)
	case err != nil && !errors.Is(err, ErrInUse):
		l.pauses[a.Kind].failed(endNs)
		return true
	}
	return false
}

// errSkipped is the outcome of an action that was not tried.
var errSkipped = errors.New("schedule: not tried")

// skip lets an action fail without trying it. To keep it for later would keep the Decider from what else it wants, and by
// then it may be wrong. Only a Decider that insists on it is made to wait.
func (l *Loop) skip(a Action, nowNs int64) Waiting {
	l.Decider.Done(a, nowNs, nowNs, errSkipped)
	if a.Kind == l.skipped.Kind && a.Region == l.skipped.Region {
		return Waiting{DueNs: l.pauses[a.Kind].retryNs, ReviewNs: Never}
	}
	l.skipped = a
	return Waiting{}
}

// backoff makes the pauses after failures of one kind of action longer and longer. One kind does not hold up the other:
// a registration that is due does not wait because the device refuses to deregister.
type backoff struct {
	failures int   // since the last action that did not fail
	retryNs  int64 // no action of the kind before this
}

const (
	minBackoffNs          = 50_000     // 50 us
	maxBackoffNs          = 10_000_000 // 10 ms
	failuresBeforeBackoff = 8          // up to this many in a row count as single ones
)

// failed notes a failure. Without pauses the Decider's wishes would become a busy loop of system calls that fail.
func (b *backoff) failed(nowNs int64) {
	b.failures++
	if b.failures > failuresBeforeBackoff {
		b.retryNs = nowNs + min(int64(minBackoffNs)<<min(b.failures-failuresBeforeBackoff, 20), maxBackoffNs)
	}
}
