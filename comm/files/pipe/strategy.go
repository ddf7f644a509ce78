package pipe

import (
	"pinwheel"
	"pinwheel/mem"
)

// Strategy is a Shape and the policy of the Manager that registers its memory.
type Strategy struct {
	Name   string
	Shape  Shape
	Policy pinwheel.Policy
	// CopyBelow is the size in bytes below which a transfer is copied through the ring of Static, whatever the Shape
	// says. It makes no sense for memory that is registered already.
	CopyBelow int64
	// Adapts lets a long transfer have fewer and larger chunks, and whoever transfers many files register what is sent
	// again, however little it is.
	Adapts bool
}

// The strategies of sections 3.1 to 3.3, and Auto.
var (
	Static    = Strategy{Name: "static", Shape: Shape{Copy, 64 << 10, 2, 0}, Policy: pinwheel.LeavePinned}
	Dynamic   = Strategy{Name: "dynamic", Shape: Shape{Map, 0, 1, 0}, Policy: pinwheel.OnDemand}
	Pipelined = Strategy{Name: "pipelined", Shape: Shape{Map, 1 << 20, 6, 0}, Policy: pinwheel.OnDemand}
	Sendfile  = Strategy{Name: "sendfile", Shape: Shape{Map, 1 << 20, 6, 4}, Policy: pinwheel.OnDemand}
	// With the paper's costs, copying and registering take the same time at about 384 KiB.
	Auto = Strategy{Name: "auto", Shape: Sendfile.Shape, Policy: pinwheel.Pinwheel, CopyBelow: 384 << 10, Adapts: true}
)

// Each chunk costs a registration, a message, and threads that wake. So those of a long transfer are larger, and few
// under way hide all that.
const (
	longChunkBytes = 2 << 20 // 2 MiB: a registration that a cache also finds for the chunks of shorter transfers
	// manyChunks remain at least: while the first is registered, nothing is sent.
	manyChunks = 32
)

// Strategies returns all strategies, the default last.
func Strategies() []Strategy { return []Strategy{Static, Dynamic, Pipelined, Sendfile, Auto} }

// For returns the numbers for a transfer of n bytes that may have budgetBytes registered. Where the budget is too
// small, chunks become smaller, down to those of Static, and then fewer; one chunk of that size always remains.
func (s Strategy) For(n, budgetBytes int64) Shape {
	shape := s.Shape
	if n < s.CopyBelow {
		shape = Static.Shape
	}
	if shape.ChunkBytes == 0 {
		shape.ChunkBytes = max(n, 1)
	}
	if times := min(n/manyChunks, longChunkBytes) / shape.ChunkBytes; s.Adapts && times > 1 && shape.Source == Map {
		shape.ChunkBytes *= times
		shape.Depth = max(shape.Depth/int(times), 1)
	}
	share := budgetBytes / int64(shape.Depth)
	share -= share % int64(mem.PageSize)
	shape.ChunkBytes = min(shape.ChunkBytes, max(share, Static.Shape.ChunkBytes))
	shape.Depth = int(min(int64(shape.Depth), max(budgetBytes/shape.ChunkBytes, 1)))
	shape.Ahead = min(shape.Ahead, shape.Depth)
	return shape
}
