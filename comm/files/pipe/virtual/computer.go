package virtual

import (
	"pinwheel/comm/files/pipe"
	"pinwheel/mem"
	"pinwheel/verbs"
)

// Computer is what transfers share, and what their steps cost. Times are of a step that has the memory bus for itself.
// If what runs at one time asks for more than the bus has, all of it that uses the bus becomes slower in proportion.
type Computer struct {
	Processors       int
	BusBytesPerSec   float64
	WireBytesPerSec  float64 // each byte crosses the bus once
	MessageNs        float64 // of the wire, for each message
	CompletionNs     float64 // from the last byte of a message until the thread that waits for it runs
	PostNs           float64 // to post a message and to take its completion
	CopyBytesPerSec  float64 // of bytes in the cache
	CopyCacheBytes   float64 // file and ring together that the cache holds between two copies
	MemoryTouches    float64 // how often a byte crosses the bus when it is copied outside the cache
	TranslationBytes float64 // of the bus, for each page whose address a registration translates
}

// Registration is what it costs to register.
type Registration struct {
	verbs.Costs
	Translates bool // virtual addresses, page by page; else the kernel has the physical ones
}

// job is what a thread or the wire does.
type job struct {
	leftNs   float64 // with the bus for itself
	busBytes float64 // per ns of that
}

func newJob(ns, busBytes float64) job {
	if ns <= 0 {
		return job{}
	}
	return job{ns, busBytes / ns}
}

// step returns what a step of a transfer takes.
func (c *Computer) step(t *Transfer, s pipe.Step, ringBytes int64) job {
	n := float64(s.Chunk.Len)
	pages := float64((s.Chunk.Len + int64(mem.PageSize) - 1) / int64(mem.PageSize))
	cost := func(k verbs.Cost) float64 { return k.FixedNs + k.PerPageNs*pages }
	kept := t.Kept || s.Chunk.Source == pipe.Copy && t.Shape.Source == pipe.Map // the ring is registered for good
	switch {
	case s.Kind == pipe.Post:
		return newJob(c.PostNs, 0)
	case s.Kind == pipe.Fetch && s.Chunk.Source == pipe.Copy:
		outside := max(1-c.CopyCacheBytes/float64(t.Bytes+min(ringBytes, t.Bytes)), 0)
		bus := n * outside * c.MemoryTouches
		return newJob(n*(1-outside)/c.CopyBytesPerSec*1e9+bus/c.BusBytesPerSec*1e9, bus)
	case kept || s.Kind == pipe.Fetch: // a registration includes what it takes to map the pages
		return job{}
	case s.Kind == pipe.Release:
		return newJob(cost(t.Registration.Deregister), 0)
	case t.Registration.Translates:
		return newJob(cost(t.Registration.Register), c.TranslationBytes*pages)
	default:
		return newJob(cost(t.Registration.Register), 0)
	}
}

// message returns what the wire takes for a chunk.
func (c *Computer) message(n int64) job {
	return newJob(c.MessageNs+float64(n)/c.WireBytesPerSec*1e9, float64(n))
}
