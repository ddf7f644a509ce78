//go:build amd64 || arm64

package vmwatch

import (
	"go.uber.org/atomic"

	"pinwheel/mem"
)

// uffdRange is one armed range. Several may overlap or be equal.
type uffdRange struct {
	r mem.Range
	n *uffdNotifier
	// lost is set when part of r was found to be mapped anew and is about to
	// be armed again for another range: from then on the kernel's answer for r
	// would be about the wrong mapping.
	lost atomic.Bool
	// faults is pageFaults before the last pinning; negative while not registered.
	faults atomic.Int64
	// trusted says that r is pinned, and that events and the generation tell of all that may happen to it.
	trusted atomic.Bool
}
