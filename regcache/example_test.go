package regcache_test

import (
	"fmt"

	"pinwheel/mem"
	"pinwheel/regcache"
	"pinwheel/verbs"
	"pinwheel/verbs/sim"
)

// The pipelined protocol of the 2009 proposal "New proposal for memory
// management": a long message goes out in one piece if all of it is registered
// already, or else is registered and sent piece by piece.
func Example_pipelinedProtocol() {
	cache, err := regcache.New(sim.New(sim.Options{}), regcache.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer cache.Close()

	post := func(r mem.Range, key uint32) { fmt.Printf("post %s\n", mem.FormatBytes(r.Len())) }
	send := func(buffer mem.Range, piece uint64) error {
		if ref, ok := cache.IsRegistered(buffer, verbs.AccessLocalWrite); ok {
			post(buffer, ref.LKey())
			cache.Release(ref) // after completion; it stays registered
			return nil
		}
		for r := (mem.Range{Start: buffer.Start}); r.Start < buffer.End; r.Start = r.End {
			r.End = min(r.Start+mem.Addr(piece), buffer.End)
			ref, _, err := cache.Acquire(r, verbs.AccessLocalWrite)
			if err != nil {
				return err
			}
			post(r, ref.LKey())
			cache.Release(ref)
		}
		return nil
	}

	buffer := mem.Range{Start: 0x7f0000000000, End: 0x7f0000000000 + 160<<10}
	if err := send(buffer, 64<<10); err != nil {
		fmt.Println(err)
	}
	fmt.Println("register all of it")
	ref, outcome, err := cache.Acquire(buffer, verbs.AccessLocalWrite)
	if err != nil {
		fmt.Println(err)
		return
	}
	cache.Release(ref)
	fmt.Println(outcome)
	if err := send(buffer, 64<<10); err != nil {
		fmt.Println(err)
	}
	// Output:
	// post 64.0 KiB
	// post 64.0 KiB
	// post 32.0 KiB
	// register all of it
	// late
	// post 160.0 KiB
}

// A helper thread releases a region behind the transfer and registers it
// again just before its next use. Its ID stays the same.
func ExampleCache_Deregister() {
	provider := sim.New(sim.Options{})
	cache, err := regcache.New(provider, regcache.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer cache.Close()
	buffer := mem.Range{Start: 0x7f0000000000, End: 0x7f0000000000 + 64<<10}
	ref, outcome, err := cache.Acquire(buffer, verbs.AccessLocalWrite)
	if err != nil {
		fmt.Println(err)
		return
	}
	id := ref.ID()
	fmt.Println(outcome, cache.Deregister(id) != nil) // in use
	cache.Release(ref)
	fmt.Println(cache.Deregister(id), provider.Usage().PinnedBytes)
	fmt.Println(cache.Register(id), provider.Usage().PinnedBytes)
	ref, outcome, _ = cache.Acquire(buffer, verbs.AccessLocalWrite)
	fmt.Println(outcome, ref.ID() == id)
	cache.Release(ref)
	// Output:
	// first true
	// <nil> 0
	// <nil> 65536
	// hit true
}
