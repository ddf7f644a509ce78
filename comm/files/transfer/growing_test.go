package transfer

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pinwheel/comm/files"
	"pinwheel/internal/testwait"
)

// A log that grows while it is copied is copied as of its start, with a line.
func TestFilesThatGrowAreCopiedAsOfTheirStart(t *testing.T) {
	testwait.Bound(t)
	for _, size := range []int{100, 20 << 20} {
		there, c := serve(t)
		here := t.TempDir()
		path := filepath.Join(there, "f")
		content := random(size)
		put(t, path, content, 0o644)
		stop := changing(t, path, grow)
		for _, sum := range []files.Sum{files.CRC32C, files.NoSum} {
			for verb, copyIt := range map[string]func(Options) (string, Result, error){
				"get": func(o Options) (string, Result, error) {
					r, err := Get(t.Context(), c, "f", here, o)
					return filepath.Join(here, "f"), r, err
				},
				"put": func(o Options) (string, Result, error) {
					r, err := Put(t.Context(), c, path, "to", o)
					return filepath.Join(there, "to"), r, err
				},
				"put of a tree": func(o Options) (string, Result, error) {
					o.Recursive = true
					tree := filepath.Join(t.TempDir(), "tree")
					must(t, os.Mkdir(tree, 0o755), os.Link(path, filepath.Join(tree, "f")))
					r, err := Put(t.Context(), c, tree, "tree", o)
					return filepath.Join(there, "tree", "f"), r, err
				},
				"get to a stream": func(o Options) (string, Result, error) {
					var w bytes.Buffer
					r, err := GetTo(t.Context(), c, "f", &w, o)
					must(t, os.WriteFile(filepath.Join(here, "stream"), w.Bytes(), 0o600))
					return filepath.Join(here, "stream"), r, err
				},
			} {
				testwait.Until(t, "the file grows during a copy", func() bool {
					var told []string
					to, r, err := copyIt(Options{Verify: sum, Warn: func(m string) { told = append(told, m) }})
					got, readErr := os.ReadFile(to)
					more := len(got) - len(content)
					// A busy machine may give it no time to grow between two copies of a tree: that is not copied again.
					if err != nil || readErr != nil || r.Files+r.Unchanged != 1 || more < 0 || !bytes.HasPrefix(got, content) ||
						!slices.Equal(got[size:], bytes.Repeat([]byte("x"), more)) {
						t.Fatalf("%s: %+v, %d bytes, %v, %v", verb, r, len(got), err, readErr)
					}
					if len(told) != int(r.Grown) || r.Grown > 0 && !strings.HasSuffix(told[0], "f: grew while it was copied: "+
						"the copy has what it had at the start") {
						t.Fatalf("%s: %+v, told %q", verb, r, told)
					}
					return r.Grown == 1
				})
			}
		}
		stop()
	}
}
