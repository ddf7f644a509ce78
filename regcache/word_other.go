//go:build !amd64

package regcache

import "sync/atomic"

// loadWord reads a word of an entry between two loads of its state.
func loadWord(w *uint64) uint64 { return atomic.LoadUint64(w) }

// storeWord publishes a Local's own reference word, or what the writer adds to the table,
// not before earlier loads and stores.
func storeWord(w *uint64, v uint64) { atomic.StoreUint64(w, v) }
