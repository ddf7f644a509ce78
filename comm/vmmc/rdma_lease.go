package vmmc

import (
	"context"
	"time"

	"pinwheel/comm/vmmc/internal/lease"
	"pinwheel/comm/vmmc/internal/wire"
	"pinwheel/internal/clock"
	"pinwheel/mem"
	"pinwheel/predictor"
	"pinwheel/verbs"
)

// leaseCosts are what a renewal and a yield take on a fast network, to begin with: a registration, and the way to
// the exporter and back.
var leaseCosts = verbs.Costs{
	Register:   verbs.Cost{PerPageNs: verbs.DefaultCosts.Register.PerPageNs, FixedNs: 100_000},
	Deregister: verbs.DefaultCosts.Deregister,
}

const (
	leaseIdle = time.Second      // that a lease may be unused, whatever is predicted
	leaseLook = time.Millisecond // how often the holder learns, while it has leases
)

func newHolder(s *rdmaSender) *lease.Holder {
	return lease.NewHolder((*holderDriver)(s), lease.HolderOptions{Costs: leaseCosts, IdleNs: leaseIdle.Nanoseconds()})
}

// holderDriver is an rdmaSender as its Holder sees it. link.mu is held in its methods.
type holderDriver rdmaSender

// Renew asks the exporter to register an export.
func (d *holderDriver) Renew(number uint64) {
	d.link.send(&wire.Frame{Type: wire.Lease, Number: number}, nil)
}

// Yield says that nothing is on its way to an export by RDMA.
func (d *holderDriver) Yield(number uint64) {
	if i := d.link.imports[number]; i != nil {
		i.remote = remoteRegion{}
	}
	d.link.send(&wire.Frame{Type: wire.Yield, Number: number}, nil)
}

// lease asks for the lease of an import that was just granted, which is likely to be used soon. link.mu is held.
func (i *Import) lease() {
	s := i.link.rdma
	if s == nil || !s.up || i.err != nil || i.shared || i.bytes == 0 || i.lessee == s {
		return
	}
	s.holder.Add(i.number, i.bytes)
	i.lessee = s
	s.holder.Use(i.number, clock.NowNs()) // there is none so far
}

// lend begins the lease of an op, and tells whether there is one. link.mu is held.
func (i *Import) lend(op *Op) bool {
	s := i.link.rdma
	if s == nil || !s.up || i.err != nil {
		return false
	}
	i.lease()
	op.startNs = clock.NowNs()
	if s.holder.Use(i.number, op.startNs) {
		op.lessee = s
		return true
	}
	s.holder.Complete(i.number, false, op.leaseUse(), op.startNs)
	return false
}

// AwaitRDMA waits until messages go by RDMA: until the device is connected, and the export is registered for this node.
// It tells whether they do. It does not wait while RDMA is down, where there is none, or where the exporter can't
// register the export. While other leases take all of the exporter's Options.MaxPinned, it waits for them: bound ctx.
func (i *Import) AwaitRDMA(ctx context.Context) bool {
	o := i.link
	select {
	case <-o.tried:
	case <-o.ended:
		return false
	case <-ctx.Done():
		return false
	}
	for {
		o.mu.Lock()
		s := o.rdma
		if i.err != nil || i.shared || i.bytes == 0 || s == nil || !s.up {
			o.mu.Unlock()
			return false
		}
		i.lease()
		now := clock.NowNs()
		leased := s.holder.Use(i.number, now) // else it asks for the lease
		s.holder.Complete(i.number, leased, predictor.Use{StartNs: now, EndNs: now}, now)
		if leased && i.rdma() {
			o.mu.Unlock()
			return true
		}
		if !s.holder.Asked(i.number) {
			o.mu.Unlock()
			return false
		}
		if i.answered == nil {
			i.answered = make(chan struct{})
		}
		answered := i.answered
		o.mu.Unlock()
		select {
		case <-answered:
		case <-s.over:
			return false
		case <-i.ended:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// leaseAnswered wakes those who wait for an answer about the lease. link.mu is held.
func (i *Import) leaseAnswered() {
	if i.answered != nil {
		close(i.answered)
		i.answered = nil
	}
}

// recalled hears that the exporter wants a lease back. link.mu is held.
func (s *rdmaSender) recalled(number uint64) {
	s.holder.Recalled(number, clock.NowNs())
	if i := s.link.imports[number]; i != nil && i.lent {
		if s.stir(); i.shorts == 0 {
			i.unlendShort(s)
		}
	}
}

// granted takes the lease of an import. link.mu is held.
func (s *rdmaSender) granted(number uint64) error {
	select {
	case s.lease <- struct{}{}:
	default:
	}
	return s.holder.Granted(number, clock.NowNs())
}

// unlend ends the lease of an op. link.mu is held.
func (op *Op) unlend() {
	s := op.lessee
	op.lessee = nil
	if s != nil && s == op.to.link.rdma {
		now := clock.NowNs()
		s.holder.Complete(op.to.number, true, op.leaseUse(), now)
	}
}

// leaseUse is what the predictor hears of an op that ends now.
func (op *Op) leaseUse() predictor.Use {
	kind := opSend
	if op.update {
		kind = opUpdate
	}
	start := mem.Addr(op.offset)
	return predictor.Use{
		Range: mem.Range{Start: start, End: start + mem.Addr(op.bytes)}, StartNs: op.startNs, EndNs: clock.NowNs(),
		Op: kind, Frames: op.from.site,
	}
}

// site finds the call site of an op for the predictors of source and destination. Whoever registers a source knows
// more than the stack, which takes as long to walk as to post the message.
func (op *Op) site() {
	switch {
	case op.update:
		op.from.site = updateSite
	case op.registered != nil:
		op.from.site = registeredSite
	default:
		op.from.site.Callers(4) // site, prepare, enqueue and begin are the same for all
	}
}

// renewals has the holder do what is due, and looks whether writes complete, until the attempt is over.
func (s *rdmaSender) renewals() {
	var progress progress
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-s.lease:
		case <-s.over:
			return
		case <-s.link.ended:
			return
		}
		s.link.mu.Lock()
		now := clock.NowNs()
		next := s.holder.Next(now)
		busy := s.holder.Busy() // as long as writes are on their way
		s.look()                // nobody may have: who has a Progress may be busy
		if progress.stalled(s.first, s.next, now, s.link.silence.Nanoseconds()) {
			s.failed(errStalled)
		}
		s.link.mu.Unlock()
		wait := time.Duration(min(next-now, int64(time.Hour)))
		if busy {
			wait = min(wait, leaseLook)
		}
		timer.Reset(max(wait, 0))
	}
}
