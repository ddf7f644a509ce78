package files

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// far is where offsets need more than 32 bits, and farBytes the size of a file beyond that.
const far, farBytes = 1 << 32, 5 << 30

// farParts are the parts of such a file that are no holes: on both sides of a bound, across it, and at the end.
var farParts = []int64{0, far/2 - 300_000, far - 300_000, far + 10<<20, farBytes - 700_000}

const farPart = 700_000

func TestFarOffsets(t *testing.T) {
	overEach(t, writable, func(t *testing.T, w *world) {
		path := w.sparse("f", farBytes)
		disk, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer disk.Close()
		parts := map[int64][]byte{}
		for _, at := range farParts {
			parts[at] = random(farPart)
			if _, err := disk.WriteAt(parts[at], at); err != nil {
				t.Fatal(err)
			}
		}
		settle(t, path)
		c := w.client()
		f := open(t, c, "f")
		into, err := c.NewWindow(testContext(t), 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		defer into.Close()
		for at, part := range parts {
			begin := max(at-4096, 0)
			n := min(at+farPart+4096, farBytes) - begin // with some of the holes around it
			want := make([]byte, n)
			copy(want[at-begin:], part)
			var got bytes.Buffer
			if k, err := f.CopyRange(testContext(t), &got, begin, n); k != n || err != nil {
				t.Errorf("at %d: %d of %d bytes, %v", at, k, n, err)
			}
			same(t, "CopyRange", got.Bytes(), want)
			if k, err := f.ReadInto(testContext(t), into, 0, begin, n); k != n || err != nil {
				t.Errorf("at %d: %d of %d bytes into a window, %v", at, k, n, err)
			}
			same(t, "ReadInto", into.Bytes()[:n], want)
		}
		if got := c.Transport(); got != w.name {
			t.Errorf("bytes came by %s", got)
		}
		var extents int64
		for e, err := range f.Data(testContext(t), far-300_000) {
			if err != nil {
				t.Fatal(err)
			}
			extents += e.Len
		}
		if extents < 3*farPart || extents > 4*farPart {
			t.Errorf("%d bytes are no holes from there on", extents)
		}
		w.uploadsFar(t, c, parts)
	})
}

// uploadsFar has a client upload the same parts.
func (w *world) uploadsFar(t *testing.T, c *Client, parts map[int64][]byte) {
	t.Helper()
	u := create(t, c, "g", CreateOptions{})
	for at, part := range parts {
		if n, err := u.WriteAt(testContext(t), part, at); n != len(part) || err != nil {
			t.Errorf("at %d: %d bytes, %v", at, n, err)
		}
	}
	if i, err := u.Commit(testContext(t), farBytes, NoSum, nil); err != nil || i.Size() != farBytes {
		t.Fatal(i, err)
	}
	g, err := os.Open(filepath.Join(w.dir, "g"))
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	for at, part := range parts {
		got := make([]byte, len(part))
		if _, err := g.ReadAt(got, at); err != nil {
			t.Error(err)
		}
		same(t, "the upload", got, part)
	}
}
