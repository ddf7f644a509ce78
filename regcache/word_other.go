//go:build !amd64

package regcache

import "sync/atomic"

// Elsewhere, as on AArch64, the processor reorders plain accesses, so each of these is atomic. What a hit relies on is no
// more than what table.h asks of C11, which Go's atomics exceed: loads that acquire (LDAR, or LDAPR), stores that release
// (STLR), and the barrier of the writer:
//
//   - Keys are of the state that was found before and after them. The writer closes an entry, writes its words, and opens
//     it, by stores that release. A reader that has loaded a word of another state also finds the state changed, since
//     its loads acquire, and so stay in order (litmus/keys.litmus).
//   - A reference is seen by the writer, or the reader sees the entry closed. The store of the count and the load of the state
//     after it have no order by themselves (litmus/hit-without.litmus). membarrier(2) makes the processor of each running
//     thread execute a full barrier (DMB ISH), as the writer does before and after that. Wherever it falls in a hit, one of
//     the two sees the other (hit-before, hit-between, hit-after). The same holds for the last reference to a
//     retired registration (drop-*). A thread that does not run has passed one when it was switched.
//   - Without membarrier(2) the count is an exchange (flagFenced). It is sequentially consistent, as are the look after it
//     and the writer's accesses (fenced.litmus); a look that only acquires would not do (fenced-acquire.litmus).
//   - A generation that moved before an address was given away is seen by whoever has it since (generation.litmus).
//
// make test-litmus checks the files against the memory model of C11.

// loadWord reads a word of an entry between two loads of its state.
func loadWord(w *uint64) uint64 { return atomic.LoadUint64(w) }

// storeWord publishes a Local's own reference word, or what the writer adds to the table,
// not before earlier loads and stores.
func storeWord(w *uint64, v uint64) { atomic.StoreUint64(w, v) }
