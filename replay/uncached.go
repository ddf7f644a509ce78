package replay

import (
	"pinwheel/mem"
	"pinwheel/verbs"
)

// bouncePath copies through a pool of buffers that was registered beforehand:
// the sender before the transfer, the receiver after it.
type bouncePath struct {
	stats      *Counts
	bytesPerNs float64
}

// bouncePool is where the pool of policy bounce lies in the accounts: above
// every user address.
func bouncePool(bytes uint64) mem.Range {
	return mem.Range{Start: 1 << 56, End: 1<<56 + mem.Addr(bytes)}.PageAligned()
}

func (b *bouncePath) copy(n *need) int64 {
	ns := int64(float64(n.rng.Len()) / b.bytesPerNs)
	b.stats.StallNs += ns
	return ns
}

func (b *bouncePath) acquire(t int64, n *need, h *hold) (int64, error) {
	b.stats.Needs++
	*h = hold{need: *n, needNs: t}
	if n.receives() {
		return 0, nil
	}
	return b.copy(n), nil
}

func (b *bouncePath) release(t int64, h *hold) (int64, error) {
	if h.need.receives() {
		return b.copy(&h.need), nil
	}
	return 0, nil
}

func (b *bouncePath) transferring(*hold, int64, int64) {}

// pipelinePath registers and transfers chunk by chunk and deregisters
// afterwards (Woodall, Shipman, Bosilca, Maccabe, EuroPVM/MPI 2006): only the
// first registration delays the post, the others hide behind the transfer as
// far as they are faster than the wire.
type pipelinePath struct {
	costs      verbs.Costs
	stats      *Counts
	pins       *pins
	seen       seenRanges
	chunkBytes mem.Addr
}

// chunk returns the i-th chunk of a range, of whole pages; ok is false beyond the last.
func (p *pipelinePath) chunk(r mem.Range, i int) (c mem.Range, ok bool) {
	r = r.PageAligned()
	start := r.Start + mem.Addr(i)*p.chunkBytes
	if start >= r.End {
		return mem.Range{}, false
	}
	return mem.Range{Start: start, End: min(start+p.chunkBytes, r.End)}, true
}

func (p *pipelinePath) chunks(r mem.Range) int {
	return int((r.PageAligned().Len() + uint64(p.chunkBytes) - 1) / uint64(p.chunkBytes))
}

func (p *pipelinePath) acquire(t int64, n *need, h *hold) (int64, error) {
	p.stats.Needs++
	if p.seen.first(n.rng.PageAligned()) {
		p.stats.FirstRegs += int64(p.chunks(n.rng))
	} else {
		p.stats.LateRegs += int64(p.chunks(n.rng))
	}
	first, _ := p.chunk(n.rng, 0)
	p.pins.pin(t, first)
	*h = hold{need: *n, needNs: t}
	ns := p.costs.Register.Ns(first.Pages())
	p.stats.StallNs += ns
	return ns, nil
}

// transferring pins the other chunks in step with the wire.
func (p *pipelinePath) transferring(h *hold, start, end int64) {
	n := int64(p.chunks(h.need.rng))
	for i := int64(1); i < n; i++ {
		c, _ := p.chunk(h.need.rng, int(i))
		p.pins.pin(start+(end-start)*i/n, c)
	}
	h.piped = true
}

func (p *pipelinePath) release(t int64, h *hold) (int64, error) {
	var ns int64
	for i := 0; ; i++ {
		c, ok := p.chunk(h.need.rng, i)
		if !ok || i > 0 && !h.piped {
			break
		}
		ns += p.costs.Deregister.Ns(c.Pages())
		p.pins.unpin(t+ns, c)
	}
	p.stats.StallNs += ns
	return ns, nil
}
