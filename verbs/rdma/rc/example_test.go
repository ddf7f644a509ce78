//go:build linux && cgo

package rc_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"time"

	"pinwheel"
	"pinwheel/verbs"
	"pinwheel/verbs/rdma"
	"pinwheel/verbs/rdma/arena"
	"pinwheel/verbs/rdma/rc"
)

const (
	opWrite = 1
	steps   = 100
)

// A client writes its buffer into a server's memory after every step of a
// computation. The Manager has the buffer registered around the writes only.
func Example() {
	stats, err := client(context.Background(), "server:18515")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("deregistered while computing:", stats.Cache.HelperDeregisters)
}

func client(ctx context.Context, server string) (stats pinwheel.Stats, err error) {
	p, err := rdma.Open(rdma.Options{}) // the device and a protection domain
	if err != nil {
		return stats, err
	}
	defer p.Close()
	memory, err := arena.New(16 << 20) // outside the Go heap, never remapped
	if err != nil {
		return stats, err
	}
	buffer, r, err := memory.Alloc(1 << 20)
	if err != nil {
		return stats, err
	}
	sock, err := net.Dial("tcp", server)
	if err != nil {
		return stats, err
	}
	conn, err := rc.Connect(ctx, sock, p, rc.Options{})
	if err != nil {
		return stats, err
	}
	defer conn.Close()
	remote, err := receiveRemote(ctx, conn, p, memory)
	if err != nil {
		return stats, err
	}

	// Both processes poll, so a machine with two processors has none for the helper.
	m, err := pinwheel.New(pinwheel.Options{Provider: p, IdlePolicy: pinwheel.IdleIgnore})
	if err != nil {
		return stats, err
	}
	defer m.Close()
	t, err := m.Thread() // of this goroutine
	if err != nil {
		return stats, err
	}
	defer t.Close()
	site := pinwheel.NewSite("the write after a step")
	for step := range uint64(steps) {
		compute(buffer, step)
		var use pinwheel.Use
		if err := t.Acquire(&use, r, 0, opWrite, &site); err != nil {
			return stats, err
		}
		err := finish(ctx, conn, conn.Write(step, rc.Local{Range: r, LKey: use.LKey()}, remote))
		t.Release(&use) // the helper deregisters the buffer if the next use is far
		if err != nil {
			return stats, err
		}
	}
	return m.Stats(), nil
}

// receiveRemote receives the server's first message: where its memory is.
func receiveRemote(ctx context.Context, conn *rc.Conn, p *rdma.Provider, memory *arena.Arena) (rc.Remote, error) {
	b, r, err := memory.Alloc(12)
	if err != nil {
		return rc.Remote{}, err
	}
	g, err := p.Register(r, verbs.AccessLocalWrite)
	if err != nil {
		return rc.Remote{}, err
	}
	if err := finish(ctx, conn, conn.Receive(0, rc.Local{Range: r, LKey: g.LKey})); err != nil {
		return rc.Remote{}, err
	}
	remote := rc.Remote{Addr: binary.BigEndian.Uint64(b), RKey: binary.BigEndian.Uint32(b[8:])}
	if err := p.Deregister(g); err != nil {
		return rc.Remote{}, err
	}
	return remote, memory.Free(b)
}

// finish waits for the only request outstanding, if it was posted at all.
func finish(ctx context.Context, conn *rc.Conn, posted error) error {
	if posted != nil {
		return posted
	}
	var done [1]rc.Completion
	if _, err := conn.Wait(ctx, done[:]); err != nil {
		return err
	}
	return done[0].Err()
}

// compute takes long enough for the buffer to be worth deregistering meanwhile.
func compute(b []byte, step uint64) {
	time.Sleep(20 * time.Millisecond)
	fill(b, step)
}
