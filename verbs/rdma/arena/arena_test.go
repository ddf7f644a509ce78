//go:build linux

package arena

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"pinwheel/mem"
)

func TestBuffersNeverOverlapAndMergeWhenFreed(t *testing.T) {
	const pages = 32
	a, err := New(pages * mem.PageSize)
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		type buffer struct {
			b []byte
			r mem.Range
		}
		var held []buffer
		t.Repeat(map[string]func(*rapid.T){
			"alloc": func(t *rapid.T) {
				n := rapid.Uint64Range(1, 8*mem.PageSize).Draw(t, "bytes")
				b, r, err := a.Alloc(n)
				if errors.Is(err, ErrFull) {
					return
				}
				if err != nil || uint64(len(b)) != n || r.Len() != n ||
					uint64(r.Start)%mem.PageSize != 0 || !a.Range().Contains(r) {
					t.Fatalf("Alloc(%d) = %d bytes in %v, %v", n, len(b), r, err)
				}
				for _, h := range held {
					if h.r.PageAligned().Overlaps(r.PageAligned()) {
						t.Fatalf("%v shares a page with %v", r, h.r)
					}
				}
				b[0], b[n-1] = 1, 1
				held = append(held, buffer{b, r})
			},
			"free": func(t *rapid.T) {
				if len(held) == 0 {
					t.Skip("nothing held")
				}
				i := rapid.IntRange(0, len(held)-1).Draw(t, "index")
				if err := a.Free(held[i].b); err != nil {
					t.Fatal(err)
				}
				if err := a.Free(held[i].b); !errors.Is(err, ErrNotAllocated) {
					t.Fatalf("second Free: %v", err)
				}
				held = append(held[:i], held[i+1:]...)
			},
		})
		for _, h := range held {
			if err := a.Free(h.b); err != nil {
				t.Fatal(err)
			}
		}
		all, _, err := a.Alloc(pages * mem.PageSize)
		if err != nil {
			t.Fatalf("fragments are left when all is free: %v", err)
		}
		if err := a.Free(all); err != nil {
			t.Fatal(err)
		}
	})
	if err := a.Close(); err != nil {
		t.Error(err)
	}
}

func TestSealedArenaCannotBeUnmapped(t *testing.T) {
	a, err := New(4 * mem.PageSize)
	if err != nil {
		t.Fatal(err)
	}
	if !a.Sealed() {
		if err := unix.Mseal(make([]byte, 0), 0); !errors.Is(err, unix.ENOSYS) {
			t.Fatalf("not sealed, although mseal exists: %v", err)
		}
		t.Skip("this kernel has no mseal (Linux 6.10)")
	}
	b, _, err := a.Alloc(mem.PageSize)
	if err != nil {
		t.Fatal(err)
	}
	b[0] = 42
	for call, err := range map[string]error{
		"munmap":   unix.MunmapPtr(pointer(b), uintptr(len(b))),
		"mprotect": unix.Mprotect(b, unix.PROT_NONE),
		"mmap over it": func() error {
			_, err := unix.MmapPtr(-1, 0, pointer(b), uintptr(len(b)), unix.PROT_READ,
				unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_FIXED)
			return err
		}(),
	} {
		if !errors.Is(err, unix.EPERM) {
			t.Errorf("%s: %v, want EPERM", call, err)
		}
	}
	if b[0] != 42 {
		t.Error("the memory was replaced")
	}
	if err := a.Close(); !errors.Is(err, ErrInUse) {
		t.Errorf("Close with a buffer out: %v", err)
	}
	if err := a.Free(b); err != nil {
		t.Fatal(err)
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	if _, _, err := a.Alloc(1); !errors.Is(err, ErrFull) {
		t.Errorf("Alloc after Close: %v", err)
	}
}
