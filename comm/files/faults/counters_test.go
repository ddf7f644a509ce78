package faults

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"pinwheel"
	"pinwheel/comm/files"
	"pinwheel/comm/files/pipe"
	"pinwheel/comm/vmmc"
	"pinwheel/internal/testwait"
)

// Emulation makes times there say little. What is counted is the same as with an adapter.

const (
	// countedBytes is no whole number of chunks or pages. Of a file of that size, a client asks for whole chunks at a time.
	countedBytes = 16<<20 + 4097
	// slackBytes is how much the heap of the server may grow, whatever it serves: two huge pages. If the pages of the file
	// were copied to be registered, the copies would be four times as much in the end.
	slackBytes = 4 << 20
)

// countedServer starts a server of a file, and a client of it that has RDMA.
func countedServer(t *testing.T, s pipe.Strategy, size int) (p *serverProcess, c *files.Client) {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "f"), content(size))
	write(t, filepath.Join(dir, "other"), content(otherBytes))
	p = startServer(t, serverSetting{dir, s})
	c = dial(t, open(t, "client", "tcp:127.0.0.1:0"), p.address)
	awaitRDMA(t, c, "other", otherBytes) // from then on, the server has pinned what it pins for a connection
	return p, c
}

// counted gets the file, and returns what the server has counted for that.
func counted(t *testing.T, p *serverProcess, c *files.Client, size int) files.Stats {
	t.Helper()
	f, err := c.Open(t.Context(), "f")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() // only read from
	before := p.stats()
	var got bytes.Buffer
	got.Grow(size)
	if n, err := f.CopyRange(t.Context(), &got, 0, int64(size)); n != int64(size) || err != nil {
		t.Fatal(n, err)
	}
	if !bytes.Equal(got.Bytes(), content(size)) {
		t.Error("other bytes have arrived")
	}
	s := p.stats()
	s.Registrations -= before.Registrations
	s.Hits -= before.Hits
	s.BytesRDMA -= before.BytesRDMA
	s.BytesCopied -= before.BytesCopied
	if s.BytesRDMA != int64(size) || s.BytesCopied != 0 {
		t.Errorf("%d bytes by RDMA and %d through a ring, of %d", s.BytesRDMA, s.BytesCopied, size)
	}
	return s
}

func TestColdFileIsPinnedChunkByChunk(t *testing.T) {
	inGuests(t, "1")
	small := pipe.Pipelined
	small.Shape.ChunkBytes, small.Shape.Depth = 256<<10, 2
	for name, strategy := range map[string]pipe.Strategy{"6 x 1 MiB": pipe.Pipelined, "2 x 256 KiB": small} {
		t.Run(name, func(t *testing.T) {
			testwait.Bound(t)
			chunk := strategy.Shape.ChunkBytes
			bound := chunk * int64(strategy.Shape.Depth)
			p, c := countedServer(t, strategy, countedBytes)
			before, err := p.memory()
			if err != nil {
				t.Fatal(err)
			}
			var s files.Stats
			most := p.most(func() { s = counted(t, p, c, countedBytes) })
			after, err := p.memory()
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("before %+v, most %+v, after %+v; %+v", before, most, after, s.RegistrarStats)
			if want := (countedBytes + chunk - 1) / chunk; s.Registrations != want || s.Hits != 0 {
				t.Errorf("%d registrations, not %d, and %d hits", s.Registrations, want, s.Hits)
			}
			if pinned := most.pinned - before.pinned; pinned > bound || pinned < chunk || s.PeakBytes > bound {
				t.Errorf("the kernel has seen %d bytes pinned, and the server counted %d: not from a chunk of %d to %d",
					pinned, s.PeakBytes, chunk, bound)
			}
			if after.pinned != before.pinned || s.PinnedBytes != 0 {
				t.Errorf("%d bytes are pinned afterwards, which were %d before; the server counts %d",
					after.pinned, before.pinned, s.PinnedBytes)
			}
			if grown := max(most.anonymous, after.anonymous) - before.anonymous; grown > slackBytes {
				t.Errorf("anonymous memory has grown by %d bytes", grown)
			}
		})
	}
}

// What the helper thread of policy pinwheel releases between two gets is its own affair. It leaves most gets alone.
func TestHotFileIsNotRegisteredAgain(t *testing.T) {
	inGuests(t, "1")
	const size = 4 << 20
	stays := pipe.Auto
	stays.Policy = pinwheel.LeavePinned
	for name, each := range map[string]struct {
		strategy pipe.Strategy
		gets     int // after the first, one of which registers nothing
	}{"auto": {pipe.Auto, 8}, "auto, and all stays pinned": {stays, 1}} {
		t.Run(name, func(t *testing.T) {
			testwait.Bound(t)
			p, c := countedServer(t, each.strategy, size)
			first := counted(t, p, c, size)
			if want := size / each.strategy.Shape.ChunkBytes; first.Registrations != want || first.Hits != 0 {
				t.Errorf("the first: %d registrations, not %d, and %d hits", first.Registrations, want, first.Hits)
			}
			var registered []int64
			for range each.gets {
				again := counted(t, p, c, size)
				if again.Registrations+again.Hits != first.Registrations {
					t.Errorf("another one: %d registrations, %d hits", again.Registrations, again.Hits)
				}
				if registered = append(registered, again.Registrations); again.Registrations == 0 {
					break
				}
			}
			t.Logf("registrations: %d, then %d", first.Registrations, registered)
			if registered[len(registered)-1] != 0 {
				t.Error("no get found everything registered")
			}
		})
	}
}

// The stages of a transfer take longer than the transfer if they overlap. With one chunk at a time they can't. To post is
// a part of sending.
func TestStagesOverlapFromTwoChunksOn(t *testing.T) {
	inGuests(t, "1")
	testwait.Bound(t)
	const size = 8 << 20
	to, from := open(t, "client", "tcp:127.0.0.1:0"), open(t, "server", "tcp:127.0.0.1:0")
	window, err := to.Alloc(size)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := to.Export(1, window, vmmc.Permissions{Peers: []string{"server"}}, vmmc.ExportOptions{}); err != nil {
		t.Fatal(err)
	}
	dst, err := from.Import(t.Context(), 1, to.Addresses()[0])
	if err != nil {
		t.Fatal(err)
	}
	if !dst.AwaitRDMA(t.Context()) {
		t.Fatal("RDMA does not come")
	}
	path := filepath.Join(t.TempDir(), "f")
	write(t, path, content(size))
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() // only read from
	for _, depth := range []int{1, 2, 6} {
		strategy := pipe.Pipelined
		strategy.Shape.Depth = depth
		s, err := files.Send(t.Context(), dst, 0, f, 0, size, files.SendOptions{Strategy: strategy})
		if err != nil || s.Way != files.ByRDMA || s.CopiedBytes != 0 || !bytes.Equal(window, content(size)) {
			t.Fatalf("depth %d: %+v, %v", depth, s, err)
		}
		clear(window)
		u := s.Times
		overlap := float64(u.Fetch+u.Register+u.Release+u.Sending) / float64(u.Wall)
		t.Logf("depth %d: %.3f, %+v", depth, overlap, u)
		if (overlap > 1) != (depth > 1) {
			t.Errorf("depth %d: the stages took %.3f times as long as the transfer", depth, overlap)
		}
	}
}
