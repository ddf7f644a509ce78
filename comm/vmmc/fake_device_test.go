package vmmc

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"testing"

	"pinwheel/mem"
	"pinwheel/verbs"
	"pinwheel/verbs/sim"
)

// fakeDevice is an RDMA device in memory, as InfiniBand (volume 1, 9.9, 10.3 and 11.6) and verbs have it: the writes of
// a queue pair land and complete in their order; a write to where the peer's domain has no registration ends both queue
// pairs; one that has failed flushes what is outstanding, whether it has landed or not. All devices of a process reach
// each other. A test may hold up what its node sends.
type fakeDevice struct {
	common *fakeDomain

	// These are protected by fakes.
	lands     int   // more writes that land, if they are not all held up
	completes int   // more that complete
	held      bool  // lands and completes count
	cut       bool  // the network answers nothing, not even that a queue pair is gone
	broken    error // the device has failed: nothing completes any more, and Check says this
	full      bool  // Register of what peers may write to fails
	slow      chan struct{}
	access    int // writes that were refused
	inlined   int // that could be inline
}

// fakes is the network, and all that is on it.
var fakes = struct {
	sync.Mutex
	changed chan struct{} // closed and replaced whenever something has completed or ended
	last    uint64        // number that was given to a queue pair or a key
	pairs   map[uint64]*fakePair
	keys    map[uint32]fakeKey
}{changed: make(chan struct{}), pairs: map[uint64]*fakePair{}, keys: map[uint32]fakeKey{}}

// fakeKey is a registration.
type fakeKey struct {
	in *fakeDomain
	r  mem.Range
	of verbs.Region
}

// fakeDomain is a protection domain.
type fakeDomain struct {
	device *fakeDevice
	*sim.Provider
}

func newFakeDevice() *fakeDevice {
	d := &fakeDevice{}
	d.common = &fakeDomain{d, sim.New(sim.Options{})}
	return d
}

var errFakeMemory = fmt.Errorf("fake: %w", verbs.ErrPinnedMemory)

// Register gives whole pages, or the bytes of exact ones, a key.
func (p *fakeDomain) Register(r mem.Range, a verbs.Access) (verbs.Region, error) {
	g, err := p.Provider.Register(r, a)
	if err != nil {
		return g, err
	}
	return p.add(g.Range, g), nil
}

func (p *fakeDomain) add(r mem.Range, of verbs.Region) verbs.Region {
	fakes.Lock()
	defer fakes.Unlock()
	fakes.last++
	key := uint32(fakes.last)
	fakes.keys[key] = fakeKey{p, r, of}
	return verbs.Region{Range: r, Access: of.Access, LKey: key, RKey: key, Handle: of.Handle}
}

func (p *fakeDomain) Deregister(g verbs.Region) error {
	fakes.Lock()
	k := fakes.keys[g.LKey]
	delete(fakes.keys, g.LKey)
	fakes.Unlock()
	return p.Provider.Deregister(k.of)
}

func (d *fakeDevice) Provider() verbs.Provider { return d.common }

func (d *fakeDevice) Sender(netip.Addr) (queuePair, error) { return d.newPair(d.common, 0) }

func (d *fakeDevice) Receiver(netip.Addr) (domain, error) {
	p, err := d.newPair(&fakeDomain{d, sim.New(sim.Options{})}, 1)
	if err != nil {
		return nil, err
	}
	return &fakeReceiver{p}, nil
}

func (d *fakeDevice) Check() error {
	fakes.Lock()
	defer fakes.Unlock()
	return d.broken
}

func (d *fakeDevice) Close() error { return d.common.Close() }

// hold lets so many writes land and complete from now on; those that have landed already complete first.
func (d *fakeDevice) hold(lands, completes int) {
	d.change(func() { d.held, d.lands, d.completes = true, lands, completes })
}

// letGo ends hold.
func (d *fakeDevice) letGo() { d.change(func() { d.held = false }) }

// change changes the device, and goes on with what it sends.
func (d *fakeDevice) change(f func()) {
	fakes.Lock()
	defer fakes.Unlock()
	f()
	for _, q := range fakes.pairs {
		if q.device == d {
			q.proceed()
		}
	}
}

// fail ends all queue pairs of a device that has failed. Those of receivers are flushed, as some devices do; what was
// posted to be sent never completes.
func (d *fakeDevice) fail(why error) {
	fakes.Lock()
	defer fakes.Unlock()
	for _, q := range fakes.pairs {
		if q.device == d {
			q.fail()
		}
	}
	d.broken = why
}

type fakeWrite struct {
	id     uint64
	src    mem.Range
	lkey   uint32
	dst    mem.Range
	rkey   uint32
	landed bool
	end    completion
}

// fakePair is a queue pair. fakes protects it.
type fakePair struct {
	device      *fakeDevice
	in          *fakeDomain
	number      uint64
	peer        uint64
	ready       bool
	failed      bool
	interrupted bool
	closed      bool
	receives    int
	posted      []*fakeWrite
	done        []completion
	unpolled    int
}

func (d *fakeDevice) newPair(in *fakeDomain, receives int) (*fakePair, error) {
	fakes.Lock()
	defer fakes.Unlock()
	if d.broken != nil {
		return nil, d.broken
	}
	fakes.last++
	q := &fakePair{device: d, in: in, number: fakes.last, receives: receives}
	fakes.pairs[q.number] = q
	return q, nil
}

func (q *fakePair) Endpoint() []byte { return binary.BigEndian.AppendUint64(nil, q.number) }

func (q *fakePair) Ready(peer []byte) error {
	if len(peer) != 8 {
		return errors.New("fake: no endpoint")
	}
	fakes.Lock()
	defer fakes.Unlock()
	q.peer, q.ready = binary.BigEndian.Uint64(peer), true
	return nil
}

func (q *fakePair) MaxMessage() uint64 { return 1 << 16 }

func (q *fakePair) Write(id uint64, src localBytes, addr uint64, rkey uint32) error {
	fakes.Lock()
	defer fakes.Unlock()
	switch {
	case q.closed || !q.ready || src.Len() > 1<<16:
		return errors.New("fake: no such write")
	case q.unpolled == sendDepth:
		return errors.New("fake: the queue is full")
	}
	q.unpolled++
	dst := mem.Range{Start: mem.Addr(addr), End: mem.Addr(addr) + mem.Addr(src.Len())}
	if src.inline {
		q.device.inlined++
	}
	w := &fakeWrite{id: id, src: src.Range, lkey: src.lkey, dst: dst, rkey: rkey, end: completion{id: id}}
	q.posted = append(q.posted, w)
	if q.failed {
		q.flush()
	}
	q.proceed()
	return nil
}

// proceed lets writes land and complete, as far as the device does.
func (q *fakePair) proceed() {
	d := q.device
	for _, w := range q.posted {
		if w.landed {
			continue
		}
		if q.failed || d.cut || d.broken != nil || d.held && d.lands == 0 {
			break
		}
		if d.held {
			d.lands--
		}
		if w.landed = true; !q.land(w) {
			break
		}
	}
	for len(q.posted) > 0 && q.posted[0].landed && !(d.held && d.completes == 0) && !d.cut && d.broken == nil {
		if d.held {
			d.completes--
		}
		w := q.posted[0]
		q.posted = q.posted[1:]
		q.complete(w.end)
		if w.end.err != nil {
			q.fail()
		}
	}
}

// land carries out a write at both sides, and tells whether others can follow it.
func (q *fakePair) land(w *fakeWrite) bool {
	to := fakes.pairs[q.peer]
	if to == nil || to.failed || !to.ready || to.peer != q.number {
		w.end.err = errors.New("fake: nobody answers")
		return false
	}
	if w.src.Empty() {
		return true
	}
	if k := fakes.keys[w.lkey]; k.in != q.in || !k.r.Contains(w.src) {
		w.end.err = errors.New("fake: local protection error")
		return false
	}
	if k := fakes.keys[w.rkey]; k.in != to.in || !k.r.Contains(w.dst) {
		q.device.access++
		w.end.err, w.end.access = errors.New("fake: remote access error"), true
		to.fail()
		return false
	}
	from, there := w.src.Bytes(), w.dst.Bytes()
	if word, aligned := word(there); aligned {
		word.Store(binary.NativeEndian.Uint64(from)) // others look at it
	} else {
		copy(there, from)
	}
	return true
}

func (q *fakePair) complete(c completion) {
	q.done = append(q.done, c)
	close(fakes.changed)
	fakes.changed = make(chan struct{})
}

// fail ends the queue pair.
func (q *fakePair) fail() {
	q.failed = true
	q.flush()
}

func (q *fakePair) flush() {
	if q.device.broken != nil {
		return
	}
	for _, w := range q.posted {
		q.complete(completion{id: w.id, err: errors.New("fake: flushed"), flushed: true})
	}
	q.posted = nil
	for ; q.receives > 0; q.receives-- {
		q.unpolled++
		q.complete(completion{err: errors.New("fake: flushed"), flushed: true})
	}
	close(fakes.changed)
	fakes.changed = make(chan struct{})
}

func (q *fakePair) Poll(dst []completion) (int, error) {
	fakes.Lock()
	defer fakes.Unlock()
	return q.poll(dst)
}

func (q *fakePair) poll(dst []completion) (int, error) {
	if q.closed {
		return 0, errors.New("fake: closed")
	}
	n := copy(dst, q.done)
	q.done = q.done[n:]
	q.unpolled -= n
	return n, nil
}

func (q *fakePair) Wait(ctx context.Context, dst []completion) (int, error) {
	for {
		fakes.Lock()
		n, err := q.poll(dst)
		if n == 0 && err == nil && q.failed && q.unpolled == 0 {
			err = errors.New("fake: nothing comes any more")
		}
		changed, interrupted := fakes.changed, q.interrupted
		q.interrupted = interrupted && (n > 0 || err != nil)
		fakes.Unlock()
		if n > 0 || err != nil || interrupted {
			return n, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

func (q *fakePair) Interrupt() {
	fakes.Lock()
	defer fakes.Unlock()
	q.interrupted = true
	close(fakes.changed)
	fakes.changed = make(chan struct{})
}

func (q *fakePair) Fail() {
	fakes.Lock()
	defer fakes.Unlock()
	if !q.failed {
		q.fail()
	}
}

func (q *fakePair) Close() error {
	fakes.Lock()
	defer fakes.Unlock()
	q.closed, q.failed = true, true
	delete(fakes.pairs, q.number)
	close(fakes.changed)
	fakes.changed = make(chan struct{})
	return nil
}

// fakeReceiver is a queue pair with a domain of its own.
type fakeReceiver struct{ *fakePair }

func (r *fakeReceiver) Register(at mem.Range) (verbs.Region, error) {
	fakes.Lock()
	full, slow := r.device.full, r.device.slow
	fakes.Unlock()
	if slow != nil {
		<-slow
	}
	if full {
		return verbs.Region{}, errFakeMemory
	}
	g, err := r.in.Provider.Register(at, verbs.AccessLocalWrite|verbs.AccessRemoteWrite)
	if err != nil {
		return g, err
	}
	return r.in.add(at, g), nil
}

func (r *fakeReceiver) Deregister(g verbs.Region) error { return r.in.Deregister(g) }

func (r *fakeReceiver) Close() error {
	err := r.fakePair.Close()
	fakes.Lock()
	for key, k := range fakes.keys {
		if k.in == r.in {
			delete(fakes.keys, key)
		}
	}
	fakes.Unlock()
	return errors.Join(err, r.in.Close())
}

func overFake(t *testing.T) transport { return transportOf(t, "fake rdma") }

// fakeOf is the device of a node of overFake.
func fakeOf(n *Node) *fakeDevice { return n.fabric.device.(*fakeDevice) }
