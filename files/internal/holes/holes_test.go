package holes

import (
	"os"
	"path/filepath"
	"testing"
)

func TestDataIsFoundBetweenHoles(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	const mib, size = 1 << 20, 10 << 20
	for _, at := range []int64{2 * mib, 7 * mib} {
		if _, err := f.WriteAt(make([]byte, mib), at); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
	if begin, _, err := NextData(f, 0, size); err != nil || begin == 0 {
		f.Close()
		t.Skipf("the file system of the test knows no holes: %v", err)
	}
	for from, want := range map[int64][2]int64{
		0: {2 * mib, 3 * mib}, 2*mib + 5: {2*mib + 5, 3 * mib}, 3 * mib: {7 * mib, 8 * mib}, 8 * mib: {size, size},
		size: {size, size},
	} {
		if begin, end, err := NextData(f, from, size); err != nil || begin != want[0] || end != want[1] {
			t.Errorf("from %d: %d to %d, %v, want %v", from, begin, end, err, want)
		}
	}
	f.Close()
	if _, _, err := NextData(f, 0, size); err == nil {
		t.Error("a file that was closed")
	}
}
