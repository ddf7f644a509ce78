package uring_test

import (
	"bytes"
	"errors"
	"os"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"pinwheel/internal/testwait"
	"pinwheel/mem"
	"pinwheel/verbs"
	"pinwheel/verbs/uring"
	"pinwheel/verbs/verbstest"
)

func tempFile(t *testing.T) *os.File {
	t.Helper()
	f, err := os.CreateTemp(t.TempDir(), "transfer")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// send returns what a device would send of r.
func send(t *testing.T, p *uring.Provider, g verbs.Region, r mem.Range) []byte {
	t.Helper()
	f := tempFile(t)
	if n, err := p.WriteFixed(g, r.Start, int(r.Len()), int(f.Fd()), 0); err != nil || n != int(r.Len()) {
		t.Fatalf("WriteFixed of %v: %d, %v", r, n, err)
	}
	sent := make([]byte, r.Len())
	if _, err := f.ReadAt(sent, 0); err != nil {
		t.Fatal(err)
	}
	return sent
}

func fill(b []byte, seed int) {
	for i := range b {
		b[i] = byte(i*7 + i>>8 + seed)
	}
}

func TestBytesMoveThroughTheRegistration(t *testing.T) {
	p := open(t, uring.Options{})
	b, r := verbstest.Map(t, 4*mem.PageSize)
	fill(b, 1)
	g := register(t, p, r)
	part := verbstest.Part(r, 100, 2*mem.PageSize)
	if got := send(t, p, g, part); !bytes.Equal(got, b[100:100+2*mem.PageSize]) {
		t.Error("sent bytes differ from memory")
	}
	f := tempFile(t)
	in := bytes.Repeat([]byte("pinwheel"), 1000)
	if _, err := f.WriteAt(in, 50); err != nil {
		t.Fatal(err)
	}
	if n, err := p.ReadFixed(g, r.Start+10, len(in), int(f.Fd()), 50); err != nil || n != len(in) {
		t.Fatalf("ReadFixed: %d, %v", n, err)
	}
	if !bytes.Equal(b[10:10+len(in)], in) {
		t.Error("received bytes are not in memory")
	}
}

// What every registration cache has to guard against.
func TestTransferUsesThePagesThatWerePinned(t *testing.T) {
	p := open(t, uring.Options{})
	b, r := verbstest.Map(t, mem.PageSize)
	fill(b, 1)
	old := bytes.Clone(b)
	g := register(t, p, r)
	replace(t, b)
	fill(b, 2)
	if !bytes.Equal(send(t, p, g, r), old) {
		t.Error("a stale registration sent the new memory: then this provider can't judge staleness")
	}
	if err := p.Deregister(g); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(send(t, p, register(t, p, r), r), b) {
		t.Error("a fresh registration sent old memory")
	}
}

func TestTransferAcrossOneGiB(t *testing.T) {
	p := open(t, uring.Options{})
	verbstest.NeedPinned(t, p, 1<<30+mapChunk)
	r := mapRepeatedly(t, 1<<30+mapChunk)
	g := register(t, p, r)
	f := tempFile(t)
	in := make([]byte, 64<<10)
	fill(in, 3)
	if _, err := f.WriteAt(in, 0); err != nil {
		t.Fatal(err)
	}
	at := r.Start + 1<<30 - 10_000 // two pieces, two slots
	if n, err := p.ReadFixed(g, at, len(in), int(f.Fd()), 0); err != nil || n != len(in) {
		t.Fatalf("ReadFixed: %d, %v", n, err)
	}
	if got := send(t, p, g, mem.Range{Start: at, End: at + mem.Addr(len(in))}); !bytes.Equal(got, in) {
		t.Error("bytes across the boundary of two slots got lost")
	}
	// The address space shows the same MiB everywhere.
	if got := send(t, p, g, verbstest.Part(r, mapChunk-10_000, 10_000)); !bytes.Equal(got, in[:10_000]) {
		t.Error("the first slot holds other pages than memory")
	}
}

func TestTransferWaitsForAPipeAndSurvivesSignals(t *testing.T) {
	testwait.Bound(t)
	p := open(t, uring.Options{})
	b, r := verbstest.Map(t, mem.PageSize)
	g := register(t, p, r)
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(ends[0])
	defer unix.Close(ends[1])
	type result struct {
		n   int
		err error
	}
	received := make(chan result)
	go func() {
		n, err := p.ReadFixed(g, r.Start, 100, ends[0], -1)
		received <- result{n, err}
	}()
	for range 50 {
		if err := unix.Kill(unix.Getpid(), unix.SIGURG); err != nil { // the Go runtime ignores it
			t.Fatal(err)
		}
		select {
		case got := <-received:
			t.Fatalf("ReadFixed returned %+v from an empty pipe", got)
		default:
		}
	}
	if _, err := unix.Write(ends[1], []byte("hello")); err != nil {
		t.Fatal(err)
	}
	if got := <-received; got.err != nil || got.n != 5 || string(b[:5]) != "hello" {
		t.Errorf("received %+v, memory %q", got, b[:5])
	}
}

func TestTransferOutsideTheRegionIsRefused(t *testing.T) {
	p := open(t, uring.Options{})
	_, all := verbstest.Map(t, 3*mem.PageSize)
	middle := verbstest.Part(all, mem.PageSize, mem.PageSize)
	g := register(t, p, middle)
	f := tempFile(t)
	for _, c := range []struct {
		addr mem.Addr
		n    int
	}{{middle.Start - 1, 2}, {middle.End - 1, 2}, {middle.Start, 0}, {middle.Start, -1}, {^mem.Addr(0), 2}} {
		if _, err := p.WriteFixed(g, c.addr, c.n, int(f.Fd()), 0); !errors.Is(err, verbs.ErrNotMapped) {
			t.Errorf("WriteFixed of %d bytes at %#x: %v, want ErrNotMapped", c.n, c.addr, err)
		}
	}
	if _, err := p.WriteFixed(g, middle.Start, 1, -1, 0); !errors.Is(err, syscall.EBADF) {
		t.Errorf("closed file: %v, want EBADF", err)
	}
	if err := p.Deregister(g); err != nil {
		t.Fatal(err)
	}
	if _, err := p.WriteFixed(g, middle.Start, 1, int(f.Fd()), 0); !errors.Is(err, verbs.ErrUnknownRegion) {
		t.Errorf("deregistered: %v, want ErrUnknownRegion", err)
	}
}

// The child gets copies of pinned pages, the parent keeps them: what it writes
// after fork is what is sent.
func TestForkLeavesThePinnedPagesToTheParent(t *testing.T) {
	p := open(t, uring.Options{})
	b, r := verbstest.Map(t, 4*mem.PageSize)
	fill(b, 1)
	g := register(t, p, r)
	pid := forkSleeper(t)
	fill(b, 2)
	if !bytes.Equal(send(t, p, g, r), b) {
		t.Error("after fork the registration is stale")
	}
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.Wait4(pid, nil, 0, nil); err != nil {
		t.Fatal(err)
	}
}
