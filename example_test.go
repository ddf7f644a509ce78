package pinwheel_test

import (
	"fmt"

	"pinwheel"
	"pinwheel/mem"
	"pinwheel/verbs"
)

// A transport sends the same buffer twice. The second time it is registered
// already.
func Example() {
	m, err := pinwheel.New(pinwheel.Options{
		Policy:       pinwheel.LeavePinned, // so that the output is always the same
		ProviderName: "sim",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer m.Close()
	t, err := m.Thread() // one for each communicating goroutine
	if err != nil {
		fmt.Println(err)
		return
	}
	defer t.Close()

	const opSend = 1
	site := pinwheel.NewSite("halo exchange")
	buffer, err := mem.NewRange(0x7f0000000800, 1<<20)
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 2 {
		var use pinwheel.Use
		if err := t.Acquire(&use, buffer, verbs.AccessRemoteRead, opSend, &site); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("send from", use.Region().Range)
		t.Release(&use)
	}
	s := m.Stats()
	fmt.Println("first:", s.Cache.First, "hits:", s.Cache.Hits, "pinned bytes:", s.Cache.Pinned.Bytes)
	// Output:
	// send from 0x7f0000000000-0x7f0000101000 (1.0 MiB)
	// send from 0x7f0000000000-0x7f0000101000 (1.0 MiB)
	// first: 1 hits: 1 pinned bytes: 1052672
}
