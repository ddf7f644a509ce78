//go:build linux && cgo

package rc_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"testing"

	"pinwheel"
	"pinwheel/verbs/rdma/rc"
	"pinwheel/verbs/rdma/rdmatest"
)

// TestHelperDeregistersBetweenTheWritesOfTheExample runs the client of the
// example: with the helper thread at work, the bytes of each step arrive.
func TestHelperDeregistersBetweenTheWritesOfTheExample(t *testing.T) {
	p := rdmatest.Open(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	type result struct {
		stats pinwheel.Stats
		err   error
	}
	done := make(chan result)
	go func() {
		stats, err := client(patience(t), listener.Addr().String())
		done <- result{stats, err}
	}()
	sock, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	c := connect(t, sock, p)
	if c == nil {
		t.FailNow()
	}
	target, hello := newBuffer(t, p, 1<<20), newBuffer(t, p, 12)
	binary.BigEndian.PutUint64(hello.b, target.remote().Addr)
	binary.BigEndian.PutUint32(hello.b[8:], target.g.RKey)
	must(t, c, c.Send(0, hello.local()))

	r := <-done
	if r.err != nil {
		t.Fatal(r.err)
	}
	s := r.stats.Cache
	t.Logf("hits %d, first %d, late %d; by the helper %d registrations, %d deregistrations", s.Hits, s.First, s.Late,
		s.HelperRegisters, s.HelperDeregisters)
	if s.HelperDeregisters == 0 || s.Hits+s.Waited+s.First+s.Late != steps {
		t.Errorf("the helper did not do its work: %+v", s)
	}
	want := make([]byte, len(target.b))
	if fill(want, steps-1); !bytes.Equal(target.b, want) {
		t.Error("the bytes of the last step did not arrive")
	}
	var got [1]rc.Completion
	if _, err := c.Wait(patience(t), got[:]); !errors.Is(err, rc.ErrPeerGone) {
		t.Errorf("after the client is gone: %v", err)
	}
}
