package regcache

// On x86 (total store order) the processor keeps plain loads in order among themselves, and a
// plain store after all earlier loads and stores. A later load may overtake a store, which
// is why the writer needs a barrier. The compiler keeps both in place around the atomic
// loads of an entry's state.

// loadWord reads a word of an entry between two loads of its state.
func loadWord(w *uint64) uint64 { return *w }

// storeWord publishes a Local's own reference word, or what the writer adds to the table.
// sync/atomic would emit XCHG, a full fence of 5 ns.
func storeWord(w *uint64, v uint64) { *w = v }
