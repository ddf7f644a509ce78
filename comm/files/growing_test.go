package files

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"pinwheel/internal/testwait"
)

// What is appended is no change for a reader that says so, whichever way the bytes go. All else is.
func TestFileThatMayGrow(t *testing.T) {
	testwait.Bound(t)
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			w := way.serve(t, ServerOptions{})
			c := w.client()
			for _, size := range []int{100, 5 << 20} {
				content := bytes.Repeat([]byte("0123456789"), size/10)
				w.write("f", content)
				path := filepath.Join(w.dir, "f")
				f, strict := open(t, c, "f"), open(t, c, "f")
				if grew, err := f.AllowGrowth(testContext(t)); grew || err != nil {
					t.Errorf("%v, %v", grew, err)
				}
				if err := os.WriteFile(path, append(content, "more"...), 0o600); err != nil { // the same file
					t.Fatal(err)
				}
				var got bytes.Buffer
				n, err := f.CopyRange(testContext(t), &got, 0, int64(size))
				if err != nil || n != int64(size) || !bytes.Equal(got.Bytes(), content) {
					t.Errorf("%d bytes of %d, %v", n, size, err)
				}
				if _, err := f.Checksum(testContext(t), CRC32C, 0, int64(size)); err != nil {
					t.Error(err)
				}
				if grew, err := f.AllowGrowth(testContext(t)); !grew || err != nil {
					t.Errorf("%v, %v", grew, err)
				}
				if _, err := strict.CopyRange(testContext(t), new(bytes.Buffer), 0, int64(size)); !errors.Is(err, ErrChanged) {
					t.Errorf("without it: %v", err)
				}
				if err := os.Truncate(path, int64(size)-1); err != nil {
					t.Fatal(err)
				}
				if _, err := f.AllowGrowth(testContext(t)); !errors.Is(err, ErrChanged) {
					t.Errorf("cut: %v", err)
				}
			}
		})
	}
}
