package calibrate

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"pinwheel/internal/machine"
	"pinwheel/mem"
)

const hugeBytes = 2 << 20 // of a transparent huge page (PMD) with 4 KiB pages

// memory is what is registered, from mmap.
type memory struct {
	mapped []byte
	rng    mem.Range
}

// mapMemory maps n bytes, not touched, of small or of huge pages. Huge ones
// are aligned.
func mapMemory(n uint64, huge bool) (memory, error) {
	size, advice := n, unix.MADV_NOHUGEPAGE
	if huge {
		size, advice = n+hugeBytes, unix.MADV_HUGEPAGE
	}
	b, err := unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return memory{}, fmt.Errorf("calibration: mmap of %s: %w", mem.FormatBytes(size), err)
	}
	m := memory{mapped: b}
	// EINVAL: a kernel without huge pages, which has only small ones.
	if err := unix.Madvise(b, advice); err != nil && (huge || err != unix.EINVAL) {
		m.unmap()
		return memory{}, fmt.Errorf("calibration: madvise: %w", err)
	}
	start := mem.RangeOf(b).Start
	if huge {
		start = (start + hugeBytes - 1) &^ (hugeBytes - 1)
	}
	m.rng = mem.Range{Start: start, End: start + mem.Addr(n)}
	return m, nil
}

// touch writes to every page, in order.
func (m memory) touch() {
	for i := 0; i < len(m.mapped); i += int(mem.PageSize) {
		m.mapped[i] = 1
	}
}

func (m memory) unmap() { _ = unix.Munmap(m.mapped) }

// isHuge reports whether the process has at least n bytes of anonymous huge pages.
func isHuge(n uint64) bool {
	have, err := machine.Bytes(os.DirFS("/"), "proc/self/smaps_rollup", "AnonHugePages")
	return err == nil && uint64(have) >= n
}
