package sim_test

import (
	"errors"
	"fmt"
	"syscall"

	"pinwheel/mem"
	"pinwheel/verbs"
	"pinwheel/verbs/sim"
)

// A device like an InfiniBand adapter, with little memory to pin and a
// passing shortage.
func Example() {
	shortage := sim.Failures{Register: []error{nil, syscall.EAGAIN}}
	p := sim.New(sim.Options{
		Limits: verbs.Limits{MaxPinnedBytes: 1 << 20},
		Costs:  verbs.Costs{Register: verbs.Cost{PerPageNs: 250, FixedNs: 16_000}},
		Fail:   shortage.Fail,
	})
	defer p.Close()

	buffer := mem.Range{Start: 0x10000, End: 0x10000 + 768<<10}
	for range 3 {
		_, err := p.Register(buffer, verbs.AccessLocalWrite)
		switch {
		case errors.Is(err, verbs.ErrBusy):
			fmt.Println("busy")
		case errors.Is(err, verbs.ErrPinnedMemory):
			fmt.Println("out of pinned memory")
		default:
			fmt.Println("registered", mem.FormatBytes(uint64(p.Usage().PinnedBytes)), "in", p.Stats().RegisterNs, "ns")
		}
	}
	// Output:
	// registered 768.0 KiB in 64000 ns
	// busy
	// out of pinned memory
}
