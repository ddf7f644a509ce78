package calibrate

import (
	"runtime"
	"sync"

	"go.uber.org/atomic"
)

// computation is the memory that a program works on between two uses of its buffers.
type computation []byte

// run writes to every line of a processor's cache.
func (c computation) run() {
	for i := 0; i < len(c); i += 64 {
		c[i]++
	}
}

// neighbours are threads that compute all the while, each on its own memory.
type neighbours struct {
	ended   atomic.Bool
	running sync.WaitGroup
	procs   int // GOMAXPROCS before them
}

// startNeighbours returns once all of them have been through their memory. It raises GOMAXPROCS by one for each: a
// registration that returns to Go without a P would wait for a neighbour's, up to 10 ms, and that would be measured.
func startNeighbours(n int, bytes uint64) *neighbours {
	g := &neighbours{procs: runtime.GOMAXPROCS(0)}
	if n > 0 {
		runtime.GOMAXPROCS(g.procs + n)
	}
	var begun sync.WaitGroup
	begun.Add(n)
	for range n {
		g.running.Go(func() {
			c := make(computation, bytes)
			c.run()
			begun.Done()
			for !g.ended.Load() {
				c.run()
			}
		})
	}
	begun.Wait()
	return g
}

func (g *neighbours) stop() {
	g.ended.Store(true)
	g.running.Wait()
	runtime.GOMAXPROCS(g.procs)
}
