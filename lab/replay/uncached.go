package replay

import (
	"pinwheel/lab/replay/pinned"
	"pinwheel/mem"
	"pinwheel/verbs"
)

// bouncePath copies through a pool of buffers that was registered beforehand:
// the sender before the transfer, the receiver after it.
type bouncePath struct {
	stats      *Counts
	bytesPerNs float64
}

// BouncePool is the range that stands for the pool of policy bounce. It lies above
// every user address.
func BouncePool(bytes uint64) mem.Range {
	return mem.Range{Start: 1 << 56, End: 1<<56 + mem.Addr(bytes)}.PageAligned()
}

func (b *bouncePath) copy(n *need) int64 {
	ns := int64(float64(n.rng.Len()) / b.bytesPerNs)
	b.stats.StallNs += ns
	return ns
}

func (b *bouncePath) acquire(t int64, n *need, u *bufferUse) (int64, error) {
	b.stats.Needs++
	*u = bufferUse{need: *n, needNs: t}
	if n.receives() {
		return 0, nil
	}
	return b.copy(n), nil
}

func (b *bouncePath) release(t int64, u *bufferUse) (int64, error) {
	if u.need.receives() {
		return b.copy(&u.need), nil
	}
	return 0, nil
}

func (b *bouncePath) transferring(*bufferUse, int64, int64) {}

func (b *bouncePath) unmapped(int64, mem.Range) (int64, error) { return 0, nil }

// pipelinePath registers and transfers chunk by chunk and deregisters
// afterwards (Woodall, Shipman, Bosilca, Maccabe, EuroPVM/MPI 2006): only the
// first registration delays the post, the others hide behind the transfer as
// far as they are faster than the wire.
type pipelinePath struct {
	costs      verbs.Costs
	stats      *Counts
	pages      *pinned.Counter
	firstUses  FirstUses
	chunkBytes uint64
}

// maxPieces bounds the accounts of one transfer: chunks of a buffer that has
// more of them are pinned and unpinned in groups.
const maxPieces = 1024

// pieces cuts a buffer into chunks, or groups of them, of whole pages, and
// tells how many chunks each is.
func (p *pipelinePath) pieces(r mem.Range, each func(i, n int, piece mem.Range, chunks int64)) {
	r = r.PageAligned()
	all := p.chunks(r)
	group := (all + maxPieces - 1) / maxPieces
	n := int((all + group - 1) / group)
	for i := range n {
		start := r.Start + mem.Addr(uint64(i)*uint64(group)*p.chunkBytes)
		piece := mem.Range{Start: start, End: min(start+mem.Addr(uint64(group)*p.chunkBytes), r.End)}
		each(i, n, piece, p.chunks(piece))
	}
}

func (p *pipelinePath) chunks(r mem.Range) int64 {
	return int64((r.PageAligned().Len() + p.chunkBytes - 1) / p.chunkBytes)
}

func (p *pipelinePath) acquire(t int64, n *need, u *bufferUse) (int64, error) {
	p.stats.Needs++
	if p.firstUses.IsFirst(n.rng.PageAligned()) {
		p.stats.FirstRegs += p.chunks(n.rng)
	} else {
		p.stats.LateRegs += p.chunks(n.rng)
	}
	p.pieces(n.rng, func(i, _ int, piece mem.Range, _ int64) {
		if i == 0 {
			p.pages.Pin(t, piece)
		}
	})
	*u = bufferUse{need: *n, needNs: t}
	ns := p.costs.Register.Ns(min(n.rng.Pages(), p.chunkBytes/mem.PageSize))
	p.stats.StallNs += ns
	return ns, nil
}

// transferring pins the other chunks in step with the wire.
func (p *pipelinePath) transferring(u *bufferUse, start, end int64) {
	p.pieces(u.need.rng, func(i, n int, piece mem.Range, _ int64) {
		if i > 0 {
			p.pages.Pin(start+int64(float64(end-start)*float64(i)/float64(n)), piece)
		}
	})
	u.piped = true
}

func (p *pipelinePath) unmapped(_ int64, r mem.Range) (int64, error) {
	p.firstUses.Forget(r.PageAligned())
	return 0, nil
}

func (p *pipelinePath) release(t int64, u *bufferUse) (int64, error) {
	var ns int64
	p.pieces(u.need.rng, func(i, _ int, piece mem.Range, chunks int64) {
		if i == 0 || u.piped {
			ns += chunks * p.costs.Deregister.Ns(piece.Pages()/uint64(chunks))
			p.pages.Unpin(t+ns, piece)
		}
	})
	p.stats.StallNs += ns
	return ns, nil
}
