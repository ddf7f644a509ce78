package vmmc

import (
	"context"
	"encoding/binary"
	"errors"
	"sync/atomic"
	"time"

	"pinwheel/internal/uffd"
	"pinwheel/mem"
)

// update sends what changes in an automatic update area over a connection. In a round, the pages that were
// written to are compared with their twins by words. What has changed goes to the twin and is sent from
// there, so that a store meanwhile changes nothing that is on its way: it is found in the next round. A twin
// does not change either before what was sent from it is out.
type update struct {
	m     *Mapping
	local []atomic.Uint64 // of sync/atomic: it is memory of the program
	stop  chan struct{}   // closed at the end

	// turn is held by whoever sends; its capacity is 1. It protects what follows, and is taken after
	// Import.mu and before Node.mu.
	turn    chan struct{}
	twin    []uint64
	dirty   []mem.Range // pages that wait to be compared
	scanner *uffd.Scanner
	unsent  *Op // from the twin, that the last round left
	from    *Op // the last that was sent from the twin
	last    *Op // the last one
	over    bool
	tracked bool // the kernel knows the pages that were written to
	lost    bool // it has told once that it doesn't any more
}

const (
	maxPieces  = 1024    // of one Op, about
	maxOpBytes = 1 << 20 // 1 MiB, about
)

func (n *Node) newUpdate(m *Mapping, o MapOptions) (*update, error) {
	u := &update{
		m: m, local: words(m.area), stop: make(chan struct{}), turn: make(chan struct{}, 1),
		twin: make([]uint64, m.area.Len()/wordBytes), scanner: new(uffd.Scanner),
	}
	err := n.tracker.track(m.area)
	u.tracked = err == nil
	if err != nil {
		n.tracker.lacking.Do(func() {
			n.warn("stores are sent by Flush and Publish only, which compare whole areas: %v", err)
		})
	}
	for k := range u.twin { // after track: a store from now on is found
		u.twin[k] = u.local[k].Load()
	}
	if o.Copy {
		u.unsent = newOp(m.in, bytesOf(u.twin), m.off, m.notice)
		if err = u.rest(n.ctx); err != nil {
			u.end()
			return nil, err
		}
	}
	if u.tracked && o.Interval >= 0 {
		n.mu.Lock()
		err = n.spawn(func() { u.rounds(newPace(o.Interval)) })
		n.mu.Unlock()
		if err != nil {
			u.end()
			return nil, err
		}
	}
	return u, nil
}

// end sends nothing any more. Import.mu is held.
func (u *update) end() {
	close(u.stop)
	u.turn <- struct{}{}
	u.over = true
	if u.tracked {
		u.m.in.link.node.tracker.untrack(u.m.area)
	}
	<-u.turn
}

// rounds sends what has changed, again and again.
func (u *update) rounds(p pace) {
	t := time.NewTicker(p.now)
	defer t.Stop()
	for {
		select {
		case <-t.C:
		case <-u.stop:
			return
		case <-u.m.in.ended:
			return
		}
		sent, err := u.found(u.m.in.link.node.ctx)
		if err != nil {
			return // the import or the mapping has ended, or the tracking
		}
		if p.next(sent) {
			t.Reset(p.now)
		}
	}
}

// errUntracked ends rounds: without tracking, only Flush and Publish compare.
var errUntracked = errors.New("vmmc: the kernel does not track stores any more")

// found sends what the kernel has found, and tells whether that was anything.
func (u *update) found(ctx context.Context) (sent bool, err error) {
	if err := u.lock(ctx); err != nil {
		return false, err
	}
	defer func() { <-u.turn }()
	if u.lost {
		return false, errUntracked
	}
	before := u.last
	err = u.round(ctx, u.m.area, false)
	return u.last != before, err
}

// lock takes the turn.
func (u *update) lock(ctx context.Context) error {
	select {
	case u.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	if u.over {
		<-u.turn
		return u.m.why()
	}
	return nil
}

// flush sends what has changed in the pages of r, and returns the message after whose arrival it has arrived. It
// compares those of which the kernel tells, or all.
func (u *update) flush(ctx context.Context, r mem.Range, all bool) (*Op, error) {
	if err := u.lock(ctx); err != nil {
		return nil, err
	}
	defer func() { <-u.turn }()
	err := u.round(ctx, r, all)
	return u.last, err
}

// store sends a word, after all that has changed if it is published.
func (u *update) store(ctx context.Context, at int, v uint64, publish bool) error {
	if err := u.lock(ctx); err != nil {
		return err
	}
	defer func() { <-u.turn }()
	if publish {
		if err := u.round(ctx, u.m.area, false); err != nil {
			return err
		}
	}
	if err := u.settled(ctx); err != nil {
		return err
	}
	// Not from the twin: the next Store need not wait for this one.
	op := newOp(u.m.in, binary.NativeEndian.AppendUint64(nil, v), u.m.off+uint64(at)*wordBytes, u.m.notice)
	if err := u.send(ctx, op); err != nil {
		return err
	}
	u.local[at].Store(v)
	u.twin[at] = v
	if !publish {
		return nil
	}
	return op.out(ctx)
}

// settled waits until nothing is sent from the twin any more.
func (u *update) settled(ctx context.Context) error {
	if err := u.rest(ctx); err != nil {
		return err
	}
	if u.from == nil {
		return u.m.in.Err()
	}
	select {
	case <-u.from.sent.c:
		err := u.from.Err()
		u.from = nil
		return err
	case <-u.m.in.ended:
		return u.m.in.Err()
	case <-u.stop: // whoever ends the mapping waits for the turn
		return u.m.why()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// rest sends what has gone to the twin already.
func (u *update) rest(ctx context.Context) error {
	if u.unsent == nil {
		return nil
	}
	if op := u.unsent; op.notify && len(op.more) > 0 { // it tells of what lies between its words, too
		low, high := extent(op.more)
		op.offset, op.bytes = low, high-low
	}
	if err := u.send(ctx, u.unsent); err != nil {
		return err
	}
	u.from, u.unsent = u.unsent, nil
	return nil
}

// round compares and sends. What it leaves undone the next one does first: a page is compared only once
// before its words are out.
func (u *update) round(ctx context.Context, r mem.Range, all bool) error {
	for len(u.dirty) > 0 {
		if err := u.sendDirty(ctx); err != nil {
			return err
		}
	}
	u.scan(r.PageAligned(), all)
	return u.sendDirty(ctx)
}

func (u *update) sendDirty(ctx context.Context) error {
	if err := u.settled(ctx); err != nil {
		return err
	}
	bytes := 0
	for len(u.dirty) > 0 {
		d := &u.dirty[len(u.dirty)-1]
		page := mem.Range{Start: d.Start, End: d.Start + mem.Addr(mem.PageSize)}
		if u.unsent == nil {
			u.unsent, bytes = newOp(u.m.in, nil, 0, u.m.notice), 0
		}
		bytes += u.compare(page, u.unsent)
		if d.Start = page.End; d.Empty() {
			u.dirty = u.dirty[:len(u.dirty)-1]
		}
		if len(u.unsent.more) >= maxPieces || bytes >= maxOpBytes {
			if err := u.rest(ctx); err != nil {
				return err
			}
		}
	}
	if u.unsent != nil && len(u.unsent.more) == 0 {
		u.unsent = nil
	}
	return u.rest(ctx)
}

// scan finds the pages to compare.
func (u *update) scan(r mem.Range, all bool) {
	if r.Empty() {
		return
	}
	if u.tracked && !u.lost && !all {
		n := u.m.in.link.node
		var err error
		if u.dirty, err = u.scanner.Written(n.tracker.pagemap, r, u.dirty); err == nil {
			return
		}
		u.lost = true
		u.dirty = u.dirty[:0] // round has sent what was there before; the rest lies in r
		n.warn("from now on Flush compares the whole area %v: %v", u.m.area, err)
	}
	u.dirty = append(u.dirty, r)
}

// compare adds what has changed in a page to a message, and returns how many bytes that is.
func (u *update) compare(page mem.Range, op *Op) (bytes int) {
	k := int(page.Start-u.m.area.Start) / wordBytes
	end := k + int(mem.PageSize)/wordBytes
	for ; k < end; k++ {
		begin := k
		for ; k < end; k++ {
			w := u.local[k].Load() // once: what goes to the twin is what is sent
			if w == u.twin[k] {
				break
			}
			u.twin[k] = w
		}
		if begin < k {
			p := piece{bytesOf(u.twin[begin:k]), u.m.off + uint64(begin)*wordBytes}
			op.more = append(op.more, p)
			bytes += len(p.src)
		}
	}
	return bytes
}

// send queues a message. If too many wait before it, so does it.
func (u *update) send(ctx context.Context, op *Op) error {
	for {
		op.update = true
		err := u.m.in.enqueue(op)
		if err == nil {
			u.last = op
		}
		if !errors.Is(err, ErrTooManyOps) {
			return err
		}
		select {
		case <-u.m.in.link.oldest():
		case <-u.m.in.ended:
		case <-u.stop:
			return u.m.why()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
