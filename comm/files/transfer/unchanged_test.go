package transfer

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"pinwheel/comm/files"
	"pinwheel/internal/testwait"
)

// To repeat the copy of a tree moves what has changed. Size and time say what that is, or checksums if asked for.
func TestWhatIsTheSameIsLeftAlone(t *testing.T) {
	testwait.Bound(t)
	there, c := serve(t)
	here, back := t.TempDir(), filepath.Join(there, "back")
	tree := filepath.Join(there, "tree")
	for name, n := range map[string]int{"small": 100, "large": 3 << 20, "d/small": 200, "d/empty": 0} {
		put(t, filepath.Join(tree, name), random(n), 0o644)
	}
	for _, c := range []struct {
		verb string
		from string
		to   string
		copy func(context.Context, Options) (Result, error)
	}{
		{"get", tree, here, func(ctx context.Context, o Options) (Result, error) { return Get(ctx, c, "tree", here, o) }},
		{"put", here, back, func(ctx context.Context, o Options) (Result, error) { return Put(ctx, c, here, "back", o) }},
	} {
		copyTree := func(what string, o Options, copied, unchanged int64) {
			t.Helper()
			o.Recursive = true
			r, err := c.copy(t.Context(), o)
			if err != nil || r.Files != copied || r.Unchanged != unchanged || r.Failed > 0 {
				t.Errorf("%s %s: %+v, %v", c.verb, what, r, err)
			}
			sameTrees(t, c.from, c.to, list(t, c.from))
		}
		copyTree("first", Options{}, 4, 0)
		before, err := os.Stat(filepath.Join(c.to, "large"))
		must(t, err)
		var m Meter
		copyTree("again", Options{Meter: &m}, 0, 4)
		if all := m.TotalBytes.Load(); m.Bytes.Load() != all || all != 3<<20+300 {
			t.Errorf("%d bytes of %d", m.Bytes.Load(), all)
		}
		for _, sum := range []files.Sum{files.CRC32C, files.SHA256} {
			copyTree("again, by checksums", Options{Compare: true, Verify: sum}, 0, 4)
		}
		if after, err := os.Stat(filepath.Join(c.to, "large")); err != nil || !os.SameFile(before, after) {
			t.Errorf("%s: it was replaced, %v", c.verb, err)
		}
		for _, name := range []string{"small", "large"} { // of the same size and time
			b := random(int(size(t, filepath.Join(c.to, name))))
			b[50]++
			put(t, filepath.Join(c.to, name), b, 0o644)
		}
		o := Options{Recursive: true}
		if r, err := c.copy(t.Context(), o); err != nil || r.Files != 0 || r.Unchanged != 4 {
			t.Errorf("%s of what looks the same: %+v, %v", c.verb, r, err)
		}
		copyTree("of what looks the same, by checksums", Options{Compare: true}, 2, 2)
		for _, name := range []string{"small", "large"} {
			must(t, os.Chtimes(filepath.Join(c.to, name), longAgo, longAgo.Add(1)))
		}
		copyTree("of what has another time", Options{}, 2, 2)
		must(t, os.Remove(filepath.Join(c.to, "small")), os.Symlink("large", filepath.Join(c.to, "small")))
		copyTree("over a link", Options{}, 1, 3)
	}
}

func size(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	must(t, err)
	return info.Size()
}
