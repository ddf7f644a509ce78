package pipe

import "fmt"

// Source says where the device reads the bytes of a chunk.
type Source uint8

const (
	Copy Source = iota // from a slot of a ring of buffers, into which they are copied first
	Map                // from the page cache, through a shared read-only mapping of the file
)

func (s Source) String() string {
	if s == Copy {
		return "copy"
	}
	return "map"
}

// Shape are the numbers that make a strategy.
type Shape struct {
	Source Source
	// ChunkBytes is the size of a chunk, which is one registration and one message. 0 stands for the whole transfer.
	ChunkBytes int64
	// Depth is how many chunks are under way at one time, from before their registration until after their release. So
	// a transfer has at most ChunkBytes * Depth registered, and the client needs a window of as many bytes.
	Depth int
	// Ahead is how many chunks may be registered, or about to be, before they are posted: while the device takes no more,
	// as others use it. 0 stands for 1.
	Ahead int
}

func (s Shape) check() error {
	if s.Source > Map || s.ChunkBytes < 0 || s.Depth < 1 || s.Ahead < 0 || s.Ahead > s.Depth {
		return fmt.Errorf("pipe: no transfer has the shape %+v: chunks have 0 bytes or more, depth is 1 or more, "+
			"and ahead is at most depth", s)
	}
	return nil
}
