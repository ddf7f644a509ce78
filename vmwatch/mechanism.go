package vmwatch

import (
	"fmt"
	"strings"

	"pinwheel/mem"
)

// Mechanism is a way of learning that a mapping changed.
type Mechanism uint8

const (
	None   Mechanism = iota // nothing may be cached
	Uffd                    // userfaultfd events, checked at each hit
	PFN                     // physical frames compared at each hit
	TP                      // BPF on every system call
	TPS                     // BPF on the tracepoints of the mapping calls
	Fentry                  // BPF on the kernel functions that change page tables
)

var mechanismNames = [...]string{None: "none", Uffd: "uffd", PFN: "pfn", TP: "tp", TPS: "tps", Fentry: "fentry"}

// String returns the name used by PINWHEEL_WATCH and in reports.
func (m Mechanism) String() string { return mechanismNames[m] }

// automatic is the order of choice: first those whose hits cost least, then
// those that keep hits longest.
var automatic = []Mechanism{Fentry, TPS, TP, PFN, Uffd, None}

// choices are the values of the setting and what each may lead to.
var choices = map[string][]Mechanism{
	"auto":   automatic,
	"bpf":    {Fentry, TPS, TP},
	"fentry": {Fentry},
	"tps":    {TPS},
	"tp":     {TP},
	"uffd":   {Uffd},
	"pfn":    {PFN},
	"none":   {None},
}

// SlowsSystemCalls reports whether a Watcher slows every system call of every process of the node, as long as it is open:
// the kernel takes another way into all of them while one has a tracepoint.
func (m Mechanism) SlowsSystemCalls() bool { return m == TPS || m == TP }

// notifiedOf reports whether the mechanism notices every change of r. Only fentry does for memory
// that isn't private and anonymous: other processes can truncate or punch the file behind it.
func (m Mechanism) notifiedOf(r mem.Range) bool {
	switch m {
	case Fentry:
		return true
	case TPS:
		return r.Start >= compatLimit && privateAnonymous(r)
	case TP, Uffd:
		return privateAnonymous(r)
	}
	return false
}

// gaps says, for people, which changes a mechanism does not notice, and how their memory is handled.
func (m Mechanism) gaps(frames bool) []string {
	elsewhere := "not cached"
	if frames {
		elsewhere = "frames compared at each hit"
	}
	const afterRing = "after IORING_OP_MADVISE: nothing cached"
	shared := "files, shared memory and SysV segments: " + elsewhere
	switch m {
	case Fentry:
		return nil
	case TPS:
		if compatLimit > 0 {
			return []string{shared, "memory below 4 GiB (int 0x80): " + elsewhere, afterRing}
		}
		return []string{shared, afterRing}
	case TP:
		return []string{shared, afterRing}
	case Uffd:
		return []string{shared, "any page fault of the process between two uses: registered again"}
	case PFN:
		return []string{"no notification: each hit compares frames"}
	}
	return []string{"nothing is cached"}
}

// Attempt is one mechanism that was tried.
type Attempt struct {
	Mechanism Mechanism
	Err       error // why it wasn't taken; nil for the one that was
}

// Report is the outcome of Open, for people.
type Report struct {
	Chosen   Mechanism
	Service  bool      // the watch service of the node has loaded the programs
	Attempts []Attempt // in the order tried
	Gaps     []string  // changes that the chosen one does not notice, and what is done about them
	Tested   []string  // the kinds of change that the self-test performed
	Skipped  []string  // those it couldn't perform here, with the reason
}

// How returns in a few words how changes are noticed: the name of the mechanism, and whether it is the service's.
func (r Report) How() string {
	if r.Service {
		return r.Chosen.String() + ", by the watch service"
	}
	return r.Chosen.String()
}

// String returns one line per fact.
func (r Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "mapping changes: %s", r.How())
	for _, g := range r.Gaps {
		fmt.Fprintf(&b, "\n  %s", g)
	}
	for _, a := range r.Attempts {
		if a.Err != nil {
			fmt.Fprintf(&b, "\n  %v refused: %v", a.Mechanism, a.Err)
		}
	}
	fmt.Fprintf(&b, "\n  self-test: %d kinds of change noticed", len(r.Tested))
	if len(r.Skipped) > 0 {
		fmt.Fprintf(&b, "; not performed: %s", strings.Join(r.Skipped, "; "))
	}
	return b.String()
}
