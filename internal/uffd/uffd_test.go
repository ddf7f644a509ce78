package uffd

import (
	"os"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"pinwheel/mem"
)

// tracked is memory of some pages that is tracked, private or shared, and was touched or not.
func tracked(t *testing.T, flags int, touched bool) (b []byte, pages func() []int) {
	t.Helper()
	fd, err := Open(WPShared | WPUnpopulated | WPAsync)
	if err != nil {
		t.Skipf("this kernel tracks no writes: %v", err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	pagemap, err := os.Open("/proc/self/pagemap")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pagemap.Close() })
	b, err = unix.Mmap(-1, 0, 200*int(mem.PageSize), unix.PROT_READ|unix.PROT_WRITE, flags|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(b) })
	if touched {
		for k := range b {
			b[k] = 1
		}
	}
	r := mem.RangeOf(b)
	if err := Register(fd, r); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { Unregister(fd, r) })
	if err := Protect(fd, r); err != nil {
		t.Fatal(err)
	}
	s := new(Scanner)
	return b, func() (numbers []int) {
		t.Helper()
		found, err := s.Written(pagemap, r, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			for a := f.Start; a < f.End; a += mem.Addr(mem.PageSize) {
				numbers = append(numbers, int(a-r.Start)/int(mem.PageSize))
			}
		}
		return numbers
	}
}

// Pages that were written to are found once; those that were only read are not.
func TestWrittenPagesAreFoundOnce(t *testing.T) {
	for name, flags := range map[string]int{"private": unix.MAP_PRIVATE, "shared": unix.MAP_SHARED} {
		for _, touched := range []bool{true, false} {
			t.Run(name+map[bool]string{true: " touched", false: " new"}[touched], func(t *testing.T) {
				b, pages := tracked(t, flags, touched)
				if got := pages(); len(got) > 0 {
					t.Fatalf("clean pages were written to: %v", got)
				}
				page := int(mem.PageSize)
				sum := byte(0)
				for k := range 200 {
					sum += b[k*page]
				}
				b[3*page+9]++
				b[4*page] = sum
				if got := pages(); !slices.Equal(got, []int{3, 4}) {
					t.Errorf("found %v", got)
				}
				if got := pages(); len(got) > 0 {
					t.Errorf("found again: %v", got)
				}
				var all []int // more regions than one call returns
				for k := 0; k < 200; k += 2 {
					b[k*page]++
					all = append(all, k)
				}
				if got := pages(); !slices.Equal(got, all) {
					t.Errorf("found %v", got)
				}
			})
		}
	}
}
