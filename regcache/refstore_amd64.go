package regcache

// storeWord publishes a front's own reference word. On x86 (total store
// order) a plain store keeps its place among earlier loads and stores; that
// it may be overtaken by a later load is what the writer's barrier is for.
// sync/atomic would emit XCHG, a full fence of 5 ns.
func storeWord(w *uint64, v uint64) { *w = v }
