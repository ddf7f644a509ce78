//go:build cgo

package main

import (
	"errors"
	"slices"
	"testing"

	"pinwheel/internal/change"
	"pinwheel/mem"
	"pinwheel/vmwatch"
)

// A change belongs before the first call that begins after it, and ends what was recorded there by then.
func TestBuffersEndBeforeTheCallAfterTheirChange(t *testing.T) {
	w, err := vmwatch.Open(vmwatch.Options{Mechanism: "bpf"})
	if errors.Is(err, vmwatch.ErrUnavailable) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	subject, err := change.Anonymous(16)
	if err != nil {
		t.Fatal(err)
	}
	defer subject.Free()
	token, _, err := w.Watch(subject.Range)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Unwatch(token)
	pages := func(from, to uint64) mem.Range {
		return mem.Range{Start: subject.Range.Start + mem.Addr(from*mem.PageSize), End: subject.Range.Start + mem.Addr(to*mem.PageSize)}
	}
	e := &endings{opened: make(chan struct{}), watch: w, next: w.Generation()}
	close(e.opened)
	e.used(pages(0, 2))
	e.used(pages(4, 8))
	var counts []uint64 // before each of three calls
	for _, r := range []mem.Range{pages(0, 1), pages(2, 3), pages(3, 16)} {
		counts = append(counts, w.Generation())
		if err := subject.Unmap(r); err != nil {
			t.Fatal(err)
		}
	}
	counts = append(counts, w.Generation())
	want := [][]mem.Range{nil, {pages(0, 1)}, nil, {pages(4, 8)}}
	for i, count := range counts {
		var ended []mem.Range
		err := e.before(count, func(r mem.Range) error {
			if r = e.end(r); !r.Empty() {
				ended = append(ended, r)
			}
			return nil
		})
		if err != nil || !slices.Equal(ended, want[i]) {
			t.Errorf("before call %d, %v ended, want %v; %v", i, ended, want[i], err)
		}
	}
	if left := slices.Collect(e.buffers.All()); !slices.Equal(left, []mem.Range{pages(1, 2)}) {
		t.Errorf("%v are left", left)
	}
	if e.lost != 0 || e.unseen() != nil {
		t.Errorf("%d times not all changes were known, %+v", e.lost, e.unseen())
	}
}

// Copies of buffers that MPI makes again and again in new memory do not add up.
func TestUnnamedMemoryCountsWhileItIsThere(t *testing.T) {
	page := func(i uint64) mem.Range {
		return mem.Range{Start: mem.Addr(i * mem.PageSize), End: mem.Addr((i + 1) * mem.PageSize)}
	}
	var u unnamed
	for i := range uint64(5) {
		u.add(page(2 * i))
		u.add(page(2 * i))
		u.add(page(2*i + 1))
		u.now.Remove(page(2 * i))
	}
	if u.times != 15 || u.peakBytes != 6*mem.PageSize {
		t.Errorf("%d registrations, %d bytes at most", u.times, u.peakBytes)
	}
}
