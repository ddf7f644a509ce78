package vmmc

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"pinwheel/internal/testwait"
	"pinwheel/verbs/verbstest"
)

// connectedPeer is a process that tests kill. It is connected over "tcp" or "rdma". The address of the exporter is in a
// file.
func connectedPeer(over, bufferID, dir string) {
	fail := func(err error) {
		if err != nil {
			fmt.Println(over, bufferID, err)
			os.Exit(1)
		}
	}
	file := filepath.Join(dir, "address")
	o := Options{Name: bufferID, Token: testToken, NoRDMA: over == "tcp"}
	switch bufferID {
	case "receiver":
		o.Listen = []string{loopbackPort(nil)}
		n, err := Open(o)
		fail(err)
		memory, err := n.Alloc(1 << 20)
		fail(err)
		_, err = n.Export(1, memory, sender, ExportOptions{})
		fail(err)
		fail(os.WriteFile(file, []byte(n.Addresses()[0]), 0o600))
	case "sender": // writes into export 1 for as long as it can
		n, err := Open(o)
		fail(err)
		address, err := os.ReadFile(file)
		fail(err)
		i, err := n.Import(context.Background(), 1, string(address))
		fail(err)
		if over == "rdma" && !i.AwaitRDMA(context.Background()) {
			fail(errors.New("messages do not go by RDMA"))
		}
		src := bytes.Repeat([]byte("s"), int(i.Bytes()))
		op, err := i.SendAsync(src, 0, SendOptions{})
		fail(err)
		fail(op.Wait(context.Background()))
		go func() {
			for i.Send(context.Background(), src, 0, SendOptions{}) == nil {
			}
			os.Exit(0)
		}()
	}
	testwait.Ready()
}

func TestRDMAExporterIsKilled(t *testing.T) {
	tr := overRDMA(t)
	o := tr.options(t, "sender")
	testwait.Bound(t)
	dir := peerDir(t)
	pinned := verbstest.StatusBytes(t, "VmPin")
	_, kill := testwait.Peer(t, "VMMC_TEST_PEER=rdma receiver")
	address, err := os.ReadFile(filepath.Join(dir, "address"))
	if err != nil {
		t.Fatal(err)
	}
	n := openNode(t, o)
	i, err := n.Import(testContext(t), 1, string(address))
	if err != nil {
		t.Fatal(err)
	}
	keepLease(t, i)
	src := outside(t, 1<<20)
	begun, ended := make(chan struct{}), make(chan error)
	go func() {
		for k := 0; ; k++ {
			if err := i.Send(context.Background(), src, 0, SendOptions{}); err != nil {
				ended <- err
				return
			}
			if k == 3 {
				close(begun)
			}
		}
	}()
	testwait.Receive(t, "some messages", begun)
	kill()
	if err := testwait.Receive(t, "the end of the messages", ended); !errors.Is(err, ErrPeerGone) {
		t.Error(err)
	}
	if err := n.Close(); err != nil {
		t.Error(err)
	}
	if after := verbstest.StatusBytes(t, "VmPin"); after != pinned {
		t.Errorf("VmPin is %d after Close, was %d", after, pinned)
	}
}

func TestRDMAImporterIsKilledWhileItSends(t *testing.T) {
	w := overRDMA(t).begin(t)
	dir := peerDir(t)
	if err := os.WriteFile(filepath.Join(dir, "address"), []byte(w.address), 0o600); err != nil {
		t.Fatal(err)
	}
	memory := w.memory(t, 4<<20)
	e := w.export(t, 1, memory, Permissions{Peers: sender.Peers, MaxImporters: 1}, ExportOptions{})
	for range 3 { // each finds the place of the one before free
		_, kill := testwait.Peer(t, "VMMC_TEST_PEER=rdma sender")
		kill()
	}
	if err := e.Unexport(testContext(t)); err != nil || memory[0] != 's' {
		t.Errorf("%v; has %q", err, memory[0])
	}
	clear(memory)
	if n := len(memory) - bytes.Count(memory, []byte{0}); n != 0 {
		t.Errorf("%d bytes landed after Unexport", n)
	}
}

// What a round has taken to the twin goes out whole, by RDMA or not.
func TestRDMAFailsUnderAutomaticUpdate(t *testing.T) {
	a := newArea(t, overRDMA(t), 16, MapOptions{Interval: -1, Copy: true})
	a.importer.opt.Warn = quiet
	a.flush(t)
	rng := rand.New(rand.NewPCG(1, 2))
	for round := range 60 {
		for range 1 + rng.IntN(2000) {
			a.local[rng.IntN(len(a.local))] = byte(rng.Uint32())
		}
		if round%20 == 10 {
			keepLease(t, a.in)
			a.in.link.mu.Lock()
			if s := a.in.link.rdma; s != nil {
				go s.qp.Fail()
			}
			a.in.link.mu.Unlock()
		}
		a.flush(t)
		a.equal(t)
	}
}

// Send returns before its short message has arrived: it arrives all the same, before the end of the export.
func TestRDMAFailsUnderShortMessages(t *testing.T) {
	for round := range uint64(5) {
		w := overRDMA(t).begin(t)
		w.importer.opt.Warn = quiet
		memory, e, i := w.pair(t, 16, ExportOptions{})
		keepLease(t, i)
		const messages = 400
		var b [8]byte
		for k := range uint64(messages) {
			if k == messages-10*round-1 {
				i.link.mu.Lock()
				i.link.rdma.qp.Fail()
				i.link.mu.Unlock()
			}
			binary.NativeEndian.PutUint64(b[:], k+1)
			if err := i.Send(testContext(t), b[:], k%2*8, SendOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		if err := e.Unexport(testContext(t)); err != nil {
			t.Fatal(err)
		}
		if first, second := wordAt(memory, 0).Load(), wordAt(memory, 8).Load(); first != messages-1 || second != messages {
			t.Errorf("the last messages are %d and %d", first, second)
		}
	}
}
