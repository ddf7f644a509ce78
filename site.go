package pinwheel

import (
	"hash/fnv"
	"runtime"

	"pinwheel/predictor"
)

// Op is the kind of a communication, in the caller's own numbering. It is
// part of what the predictor tells uses apart by.
type Op = predictor.Op

// Site identifies the place in a program that communicates: the return
// addresses that lead to it, innermost first, or anything else that is equal
// for equal places. A site that is the same for all communication costs the
// predictor accuracy, nothing else.
type Site [predictor.MaxFrames]uint64

// NewSite returns the site of a name, for a transport that knows its callers:
// make it once, keep it, and give it to every Acquire from there. It is the same in every run.
func NewSite(name string) Site {
	h := fnv.New64a()
	h.Write([]byte(name))
	return Site{h.Sum64() | 1<<63} // which is no address of code
}

// Callers sets s to the call stack of its caller, without the innermost skip
// functions. It takes about 140 ns, ten times as long as a hit: use it only where
// the caller knows nothing better.
func (s *Site) Callers(skip int) {
	var pcs [predictor.MaxFrames]uintptr
	n := runtime.Callers(skip+2, pcs[:])
	*s = Site{}
	for i, pc := range pcs[:n] {
		s[i] = uint64(pc)
	}
}
