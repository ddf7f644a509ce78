package files

import (
	"testing"

	"pinwheel/comm/files/pipe"
)

// What was registered may be gone: the end of a truncated file must not be sent from its mapping.
func TestMappedChunksOfATruncatedFileAreCut(t *testing.T) {
	f := fileOf(t, 3*4096)
	d := &device{file: f, from: 4096}
	if err := f.Truncate(4096 + 100); err != nil {
		t.Fatal(err)
	}
	for at, want := range map[int64]int64{0: 100, 50: 50, 4096: 0} {
		n, err := d.Fetch(pipe.Chunk{Source: pipe.Map, At: at, Len: 4096})
		if n != want || err != nil {
			t.Errorf("%d bytes from %d, %v; want %d", n, at, err, want)
		}
	}
	if n, err := d.Fetch(pipe.Chunk{Source: pipe.Map, At: 0, Len: 10}); n != 10 || err != nil {
		t.Errorf("%d bytes of 10, %v", n, err)
	}
}
