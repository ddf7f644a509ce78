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

// Many small holes would take longer to find than to read.
func TestSmallHolesArePartOfTheData(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const block, many = 4 << 10, 8 << 20 // 4 KiB of data before each hole of 4 KiB, 8 MiB in all
	at := func(off int64) {
		if _, err := f.WriteAt([]byte("data"), off); err != nil {
			t.Fatal(err)
		}
	}
	for off := int64(0); off < many; off += 2 * block {
		at(off)
	}
	const apart, size = many + 1<<20 + 3*block, 16 << 20 // one block within a MiB of holes on either side
	at(apart)
	at(apart + Least - 2*block) // a hole that ends in the next Least bytes
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
	if begin, _, err := NextData(f, many, size); err != nil || begin == many {
		t.Skipf("the file system of the test knows no small holes: %v", err)
	}
	var parts [][2]int64
	for from := int64(0); from < size; {
		begin, end, err := NextData(f, from, size)
		if err != nil || end <= from {
			t.Fatal(from, end, err)
		}
		if from = end; begin < end {
			parts = append(parts, [2]int64{begin, end})
		}
	}
	if len(parts) != 2 || parts[0][0] != 0 || parts[0][1] < many-block || parts[0][1] > many+Least ||
		parts[1][0] != apart || parts[1][1] < apart+Least-block || parts[1][1] > apart+2*Least {
		t.Errorf("%d parts, of which the first is %d", len(parts), parts[0])
	}
}
