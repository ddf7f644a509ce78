package predictor

import (
	"math"
	"math/bits"
)

// A context is where a program stands when a use of a region completes: the
// call site of the use, seen at several depths of its stack, and the uses
// just before it. A program reaches the same point in the same context again, and
// the same needs follow.
//
// Levels run from the least to the most specific. The first three see only
// the innermost frames: with them, entries of a program's warm-up help when its
// main loop first calls the same routine. The last two see
// every recorded frame and the size of the message, alone and together with
// the Window preceding uses (Li et al., CF'11, section 3.1).
const (
	levelFrame1 = iota
	levelFrame2
	levelFrame3
	levelSite
	levelWindow
	levels
)

// MaxWindow is the longest context window in uses.
const MaxWindow = 8

// signature identifies a context; signatures of different levels never
// describe the same context.
type signature uint64

// wholeStack is the bit that the signatures with every frame have, and no others.
const wholeStack = 1

// signatureOf returns the signature of a level from a hash of what belongs to it.
func signatureOf(h uint64, level int) signature {
	s := signature(mix(h, uint64(level)))
	if level < levelSite {
		return s &^ wholeStack
	}
	return s | wholeStack
}

// history hashes uses into signatures. It remembers the preceding uses.
type history struct {
	window int
	frame  func(uint64) uint64
	recent [MaxWindow]uint64 // site hashes of the last uses
	n      int
	stable [MaxFrames]uint64 // scratch: frames as they are in every run
	depth  int
}

// site returns the hash of a use's operation and call site.
func (h *history) site(u *Use) uint64 {
	x := mix(0, uint64(u.Op))
	h.depth = 0
	for i, f := range u.Frames {
		if f == 0 && i > 0 {
			break
		}
		if h.frame != nil {
			f = h.frame(f)
		}
		h.stable[i] = f
		h.depth++
		x = mix(x, f)
	}
	return x
}

// next returns the signatures of u, by level, whose site was just asked for, and makes u the most recent use.
func (h *history) next(u *Use, buffer uint64) (sigs [levels]signature) {
	x := mix(buffer, uint64(u.Op))
	for i, f := range h.stable[:h.depth] {
		x = mix(x, f)
		if i < levelSite {
			sigs[i] = signatureOf(x, i)
		}
	}
	for i := 1; i < levelSite; i++ {
		if sigs[i] == 0 { // a stack of fewer frames
			sigs[i] = signatureOf(x, i)
		}
	}
	site := mix(x, uint64(u.SizeClass()))
	sigs[levelSite] = signatureOf(site, levelSite)
	x = site
	for i := range min(h.window, h.n) {
		x = mix(mix(x, uint64(i+1)), h.recent[(h.n-1-i)%MaxWindow]) // a after b is not b after a
	}
	sigs[levelWindow] = signatureOf(x, levelWindow)
	h.recent[h.n%MaxWindow] = site
	h.n++
	return sigs
}

// SizeClass tells the levels of a multigrid cycle apart, and yet a program whose sizes vary gets no
// new context for every message: it is the power of two of the part of its region that a use takes,
// rounded. Sizes that vary a little around a power of two are of one class.
func (u *Use) SizeClass() int {
	n := u.Range.Len()
	if u.Bytes == 0 || n == 0 {
		return bits.Len64(n)
	}
	return -bits.Len64(uint64(float64(u.Bytes) * math.Sqrt2 / float64(n)))
}

// mix folds v into the hash h: the finalizing step of MurmurHash3 on their
// combination.
func mix(h, v uint64) uint64 {
	h = (h ^ v) * 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
