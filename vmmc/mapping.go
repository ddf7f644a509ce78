package vmmc

import (
	"fmt"
	"slices"

	"pinwheel/mem"
)

// Mapping is an automatic update area (§4.3).
type Mapping struct {
	in    *Import
	block *block
	area  mem.Range
}

// Map makes local an automatic update area: from now on it is the memory of the export from offset off, so
// every store into it is a message, in the order and at the price of a store. local must be memory of Alloc
// that is not exported; its start, its length and off must be such that whole pages of it are whole pages
// of the export. An address has one destination at a time: local must not be mapped.
//
// The area shows what the receiver has. What it held before is back after Unmap where
// nothing was mapped over it; the rest keeps what it shows at that time. Export and Map fail with ErrInUse,
// Map with ErrNotShared if the export is not in shared memory.
func (i *Import) Map(off uint64, local []byte) (*Mapping, error) {
	area := mem.RangeOf(local)
	if err := i.bounds(local, off); err != nil {
		return nil, err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.memory == nil {
		if err := i.Err(); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("%w: export %d of %s", ErrNotShared, i.export, i.link.address)
	}
	at := i.memory.start + off
	if area.Empty() || area != area.PageAligned() || at%mem.PageSize != 0 {
		return nil, fmt.Errorf("vmmc: map of %v at offset %d: not whole pages", area, off)
	}
	n := i.link.node
	n.mu.Lock()
	defer n.mu.Unlock()
	b := n.blockOf(area)
	if b == nil {
		return nil, fmt.Errorf("vmmc: map of %v, which Alloc did not return", area)
	}
	overlaps := func(m *Mapping) bool { return m.area.Overlaps(area) }
	if b.export != nil || slices.ContainsFunc(b.mappings, overlaps) {
		return nil, fmt.Errorf("%w: %v", ErrInUse, area)
	}
	m := &Mapping{in: i, block: b, area: area}
	if err := mapOver(i.memory.fd, at, area); err != nil {
		return nil, err
	}
	b.mappings = append(b.mappings, m)
	i.mappings = append(i.mappings, m)
	return m, nil
}

// Unmap ends the automatic update. The area has memory of its own again, which shows what it showed before.
// What other threads store meanwhile may be lost. A second Unmap does nothing, nor one after the end of the
// import, which unmaps.
func (m *Mapping) Unmap() error {
	i := m.in
	i.mu.Lock()
	defer i.mu.Unlock()
	at := slices.Index(i.mappings, m)
	if at < 0 {
		return nil
	}
	if err := m.unmap(); err != nil {
		return err
	}
	i.mappings = slices.Delete(i.mappings, at, at+1)
	return nil
}

// unmap gives the area its own memory. Import.mu is held.
func (m *Mapping) unmap() error {
	n := m.in.link.node
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := m.block.restore(m.area); err != nil {
		return err
	}
	m.block.mappings = slices.DeleteFunc(m.block.mappings, func(o *Mapping) bool { return o == m })
	return nil
}
