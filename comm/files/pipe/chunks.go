package pipe

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"pinwheel/verbs"
)

// cut makes the next chunk, if there are bytes left and there is room for it. Chunks are prepared one by one. So the
// one whose registration is refused is the last that was made, and its bytes are cut again.
func (p *Pipe) cut() {
	if p.ended || p.next == p.bytes || p.prepared >= max(p.shape.Ahead, 1) || p.preparing() {
		return
	}
	c := Chunk{Source: p.shape.Source, At: p.next, Len: min(p.shape.ChunkBytes, p.bytes-p.next)}
	slots := p.slots[:p.maps]
	if p.next < p.copyUntil {
		c.Source, c.Len = Copy, min(p.ringBytes, p.copyUntil-p.next)
	}
	if c.Source == Copy {
		slots = p.slots[p.maps:]
	}
	c.Slot = slices.IndexFunc(slots, func(s slot) bool { return s.state == free })
	if c.Slot < 0 || p.live+c.Len > p.shape.ChunkBytes*int64(p.shape.Depth) {
		return
	}
	slots[c.Slot] = slot{state: toFetch, chunk: c}
	p.next += c.Len
	p.live += c.Len
	p.prepared++
}

// preparing reports whether a chunk was made that is not registered yet.
func (p *Pipe) preparing() bool {
	return slices.ContainsFunc(p.slots, func(s slot) bool { return s.state > free && s.state < ready })
}

// free ends what a slot did.
func (p *Pipe) free(s *slot) {
	p.live -= s.chunk.Len
	*s = slot{}
}

func (p *Pipe) slot(c Chunk) *slot {
	if c.Source == Copy {
		return &p.slots[p.maps+c.Slot]
	}
	return &p.slots[c.Slot]
}

// drop gives up a chunk that is not registered.
func (p *Pipe) drop(s *slot) {
	p.prepared--
	p.free(s)
}

// endAt ends the transfer early: behind a chunk that was cut to its first n bytes. What lies before is still sent.
func (p *Pipe) endAt(s *slot, n int64, err error) {
	p.failed(err)
	p.live -= s.chunk.Len - n
	s.chunk.Len = n
	p.bytes = s.chunk.At + n
	p.next = p.bytes
	if n == 0 {
		p.drop(s)
	}
}

// Done ends a step that Next returned.
//
// For a Fetch, n is how many bytes there were. If the chunk has more, then the file was truncated, or can't be read:
// the transfer ends behind these bytes, with err or else io.ErrUnexpectedEOF.
//
// A Register that fails with verbs.ErrPinnedMemory or verbs.ErrRegions sends the bytes of the chunk through the ring.
// If it is of the ring, it is tried again after the next Release, if there is something to release. Whatever fails with
// verbs.ErrBusy is tried again: a Post after the next completion, and all else after Again. With other errors the
// transfer ends: before the chunk if it can't be registered, at once if it can't be posted. A Release must not fail.
func (p *Pipe) Done(step Step, n int64, err error) {
	s := p.slot(step.Chunk)
	switch {
	case step.Kind == Fetch && s.state == fetching:
		p.fetched(s, n, err)
	case step.Kind == Register && s.state == registering:
		p.registered(s, err)
	case step.Kind == Post && s.state == posting:
		p.posted(s, err)
	case step.Kind == Release && s.state == releasing:
		p.free(s)
		p.starved, p.passing = false, false
	default:
		panic(fmt.Sprintf("pipe: %+v is done, which was not begun", step))
	}
}

func (p *Pipe) fetched(s *slot, n int64, err error) {
	n = min(max(n, 0), s.chunk.Len)
	if n < s.chunk.Len && err == nil {
		err = io.ErrUnexpectedEOF
	}
	if s.chunk.Source == Copy {
		p.stats.CopiedBytes += n
	}
	s.state = toRegister
	switch {
	case p.ended:
		p.drop(s)
	case n < s.chunk.Len:
		p.endAt(s, n, err)
	}
}

func (p *Pipe) registered(s *slot, err error) {
	noRoom := errors.Is(err, verbs.ErrPinnedMemory) || errors.Is(err, verbs.ErrRegions)
	if err == nil {
		p.stats.Registrations++
	} else if noRoom {
		p.stats.Refused++
	}
	switch c := s.chunk; {
	case err == nil && p.ended:
		s.state = toRelease
	case err == nil:
		s.state = ready
		p.ready = append(p.ready, s)
	case p.ended:
		p.drop(s)
	case noRoom && c.Source == Map:
		p.drop(s)
		p.next, p.copyUntil = c.At, c.At+c.Len
	case noRoom && p.live > c.Len:
		s.state = toRegister
		p.starved = true
	case errors.Is(err, verbs.ErrBusy):
		s.state = toRegister
		p.starved, p.passing = true, true
	default:
		p.endAt(s, 0, err)
	}
}

func (p *Pipe) posted(s *slot, err error) {
	switch {
	case err == nil:
		s.state = posted
		p.prepared--
		p.waiting++
		p.posts = append(p.posts, post{at: s.chunk.At, end: s.chunk.At + s.chunk.Len})
	case errors.Is(err, verbs.ErrBusy) && !p.ended:
		s.state = ready
		p.ready = slices.Insert(p.ready, 0, s)
		p.held = true
	default:
		s.state = toRelease
		p.Stop(err)
	}
}

// Busy reports whether a step has failed for want of something that others have: nothing of this transfer tells when
// it is there. So Again must be called after a while.
func (p *Pipe) Busy() bool { return !p.ended && (p.held && p.waiting == 0 || p.passing) }

// Again lets the steps for which the transfer is Busy be tried again.
func (p *Pipe) Again() {
	if p.waiting == 0 {
		p.held = false
	}
	if p.passing {
		p.starved, p.passing = false, false
	}
}

// Completed says that the device is done with a chunk that was posted. An error ends the transfer.
func (p *Pipe) Completed(c Chunk, err error) {
	s := p.slot(c)
	if s.state != posted {
		panic(fmt.Sprintf("pipe: %+v is complete, which was not posted", c))
	}
	s.state = toRelease
	p.waiting--
	p.held = false
	if err != nil {
		p.Stop(err)
		return
	}
	i := slices.IndexFunc(p.posts, func(q post) bool { return q.at == c.At })
	p.posts[i].done = true
	for len(p.posts) > 0 && p.posts[0].done {
		p.stats.SentBytes = p.posts[0].end
		p.posts = p.posts[1:]
	}
}
