//go:build !amd64

package regcache

import "sync/atomic"

// storeWord publishes a front's own reference word, not before earlier
// loads and stores of its thread.
func storeWord(w *uint64, v uint64) { atomic.StoreUint64(w, v) }
