package realtime

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"pinwheel/internal/machine"
	"pinwheel/mem"
)

// arena is real memory for the buffers of one rank. Every run of pages that
// the trace uses is one mapping, so that buffers which overlap or share pages
// in the trace do so here.
type arena struct{ maps []mapping }

type mapping struct {
	traced mem.Range // page-aligned
	memory []byte
}

// newArena maps and touches memory for whole pages of a trace.
func newArena(traced *mem.Set) (*arena, error) {
	if err := checkMemory(traced.Bytes()); err != nil {
		return nil, err
	}
	a := &arena{}
	for r := range traced.All() {
		if err := a.add(r); err != nil {
			return nil, errors.Join(fmt.Errorf("mapping %s for the buffers of the trace: %w", mem.FormatBytes(r.Len()), err), a.close())
		}
	}
	return a, nil
}

// checkMemory refuses what would drive this machine out of memory: all of
// the arena is touched, and most of it pinned.
func checkMemory(need uint64) error {
	have, err := machine.AvailableBytes()
	if err == nil && need > have {
		err = fmt.Errorf("the buffers of this rank need %s, %s are available (replay it in virtual mode)", mem.FormatBytes(need), mem.FormatBytes(have))
	}
	return err
}

func (a *arena) add(r mem.Range) error {
	b, err := unix.Mmap(-1, 0, int(r.Len()), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return err
	}
	a.maps = append(a.maps, mapping{r, b})
	// Small pages: VmPin counts the whole of a huge page for any part of it
	// (see verbs/uring). A kernel without huge pages refuses the advice.
	if err := unix.Madvise(b, unix.MADV_NOHUGEPAGE); err != nil && !errors.Is(err, unix.EINVAL) {
		return err
	}
	for i := 0; i < len(b); i += int(mem.PageSize) {
		b[i] = 1
	}
	return nil
}

// at returns the memory of a traced range, which must lie in one of the
// ranges that the arena was made for.
func (a *arena) at(r mem.Range) []byte {
	i, found := slices.BinarySearchFunc(a.maps, r.Start, func(m mapping, s mem.Addr) int { return cmp.Compare(m.traced.Start, s) })
	if !found {
		i--
	}
	offset := r.Start - a.maps[i].traced.Start
	return a.maps[i].memory[offset : offset+mem.Addr(r.Len())]
}

func (a *arena) close() error {
	var errs []error
	for _, m := range a.maps {
		errs = append(errs, unix.Munmap(m.memory))
	}
	a.maps = nil
	return errors.Join(errs...)
}
