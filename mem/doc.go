// Package mem holds the vocabulary that every other package shares: typed
// virtual addresses, half-open ranges of them, pages, and the identity of a
// registered range.
//
// It is a leaf: it imports nothing of this module, so that packages which
// must not know of each other (verbs, queue, predictor, vmwatch, trace) can
// still agree on what a range is.
//
// All types but Set are plain values without shared state, and safe for concurrent use.
package mem
