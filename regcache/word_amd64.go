package regcache

// On x86 (total store order) plain loads stay in order among loads, and a
// plain store keeps its place after earlier loads and stores. That a store may
// be overtaken by a later load is what the writer's barrier is for. The compiler
// keeps both in their places around the atomic loads of an entry's state.

// loadWord reads a word of an entry between two loads of its state.
func loadWord(w *uint64) uint64 { return *w }

// storeWord publishes a Local's own reference word, or a word of an entry
// between two stores to its state. sync/atomic would emit XCHG, a full fence of 5 ns.
func storeWord(w *uint64, v uint64) { *w = v }
