package pinwheel_test

import (
	"bytes"
	"fmt"
	"time"

	"pinwheel"
	"pinwheel/mem"
	"pinwheel/verbs"
	"pinwheel/verbs/rdma/arena"
)

// The kinds of calls of the transport. The numbers are its own.
const (
	opSend = 1 + iota
	opReceive
)

// endpoint is one goroutine's end of the transport. The site says what the messages are for.
type endpoint struct {
	thread *pinwheel.Thread
	site   pinwheel.Site
}

// message is one under way. The uses stay where they are until they are released.
type message struct {
	source, target pinwheel.Use
}

// begin makes the memory of both sides usable: what a rendezvous does before the transfer.
func (e *endpoint) begin(m *message, target, source mem.Range) error {
	err := e.thread.Acquire(&m.target, target, verbs.AccessLocalWrite|verbs.AccessRemoteWrite, opReceive, &e.site)
	if err != nil {
		return fmt.Errorf("the target of a message: %w", err)
	}
	if err = e.thread.Acquire(&m.source, source, 0, opSend, &e.site); err != nil {
		e.thread.Release(&m.target)
		return fmt.Errorf("the source of a message: %w", err)
	}
	return nil
}

// end ends the use of the memory, after the transfer has completed.
func (e *endpoint) end(m *message) {
	e.thread.Release(&m.source)
	e.thread.Release(&m.target)
}

// exchange sends a buffer in each step of a computation, and returns how often the data were wrong.
func exchange(m *pinwheel.Manager, memory *arena.Arena, steps int) (wrong int, err error) {
	thread, err := m.Thread() // of this goroutine
	if err != nil {
		return 0, err
	}
	defer thread.Close()
	e := endpoint{thread, pinwheel.NewSite("the exchange after a step")}

	out, source, err := memory.Alloc(256 << 10)
	if err != nil {
		return 0, err
	}
	in, target, err := memory.Alloc(256 << 10)
	if err != nil {
		return 0, err
	}
	for step := range steps {
		time.Sleep(time.Millisecond) // the computation
		out[step] = byte(step + 1)

		var msg message
		if err := e.begin(&msg, target, source); err != nil {
			return wrong, err
		}
		copy(in, out) // stands for the transfer, by msg.source.LKey() and msg.target.RKey()
		e.end(&msg)
		if !bytes.Equal(in, out) {
			wrong++
		}
	}
	return wrong, nil
}

// A transport acquires the memory of a message before the transfer, and releases it afterwards. This one needs no
// device: its provider is a simulation.
func Example_transport() {
	memory, err := arena.New(1 << 20) // not of the Go heap, whose pages the runtime gives back
	if err != nil {
		fmt.Println(err)
		return
	}
	m, err := pinwheel.New(pinwheel.Options{ProviderName: "sim"})
	if err != nil {
		fmt.Println(err)
		return
	}
	wrong, err := exchange(m, memory, 100)
	if err != nil {
		fmt.Println(err)
		return
	}
	s := m.Stats().Cache
	fmt.Println("uses:", s.Hits+s.Waited+s.First+s.Late, "wrong:", wrong)
	err = m.Close()
	fmt.Println("pinned at the end:", m.Stats().Cache.Pinned.Bytes, "bytes", err)
	// Output:
	// uses: 200 wrong: 0
	// pinned at the end: 0 bytes <nil>
}
