package vmmc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"pinwheel/mem"
)

// MapOptions are those of an automatic update area.
type MapOptions struct {
	// Copy begins with a message of all that local holds. Else the receiver keeps what it has.
	Copy bool
	// Interval is how long a store into an area that is not shared waits at most before it is sent, if the
	// processor and the connection have time. 0 stands for a millisecond, and for up to 16 after a while without
	// stores; negative: it waits for Flush and Publish.
	Interval time.Duration
	// Notify attaches a notification with Tag to each message of the area (§4.4): to each Store and Publish, and to what a
	// Flush or an Interval sends, if that is anything. Stores into shared memory are seen by nobody: there, each Flush
	// notifies of all that it is asked to flush. While the queue of the export is full, these messages wait.
	Notify bool
	Tag    uint16
}

// Mapping is an automatic update area (§4.3). All methods are safe for concurrent use.
type Mapping struct {
	in     *Import
	block  *block
	area   mem.Range
	off    uint64      // of the export
	notice SendOptions // of its messages
	update *update     // nil: the area is the memory of the export
}

// Map makes local an automatic update area: every store into it, also one of the kernel, is a message to
// the export from offset off, a multiple of 8. local must be whole pages of Alloc that are not exported. An
// address has one destination at a time: local must not be mapped. Otherwise Map fails with ErrInUse.
//
// If the export is shared memory then local is that memory from now on. A store is a message at once, in
// the order and at the price of stores, and the area shows what the receiver has. off must be such that pages
// of local are pages of the export. What local held before is back after Unmap where nothing was mapped over
// it; the rest keeps what it shows at that time.
//
// Otherwise the area keeps its memory, and is compared with a twin of the same size, word by word: each
// Interval, and by Flush and Publish. The words of 8 bytes that have changed are sent, and no others: what
// the receiver writes elsewhere stays. A store that changes nothing is none. Where the kernel tracks writes
// (Linux 6.7), only pages that were written to are compared. Elsewhere Options.Warn says so, Flush and
// Publish compare the whole area, and nothing is sent without them. It does not track what devices write into
// pages that were pinned before (RDMA, O_DIRECT, fixed buffers of io_uring): FlushRange sends that, or the next store
// of a processor into the page. A receiver may see half of a word that Store and Publish did not send.
func (i *Import) Map(off uint64, local []byte, o MapOptions) (*Mapping, error) {
	area := mem.RangeOf(local)
	if err := i.bounds(local, off); err != nil {
		return nil, err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if err := i.Err(); err != nil {
		return nil, err
	}
	if area.Empty() || area != area.PageAligned() || i.shared && (i.memory.start+off)%mem.PageSize != 0 {
		return nil, fmt.Errorf("vmmc: map of %v at offset %d: not whole pages", area, off)
	}
	if off%wordBytes != 0 {
		return nil, fmt.Errorf("vmmc: map of %v at offset %d: not whole words", area, off)
	}
	m := &Mapping{in: i, area: area, off: off, notice: SendOptions{Notify: o.Notify, Tag: o.Tag}}
	if err := m.claim(); err != nil {
		return nil, err
	}
	var err error
	if i.shared {
		if o.Copy {
			copy(i.memory.bytes[off:], local)
		}
		if err = mapOver(i.memory.fd, i.memory.start+off, area); err == nil {
			keepFromChildren(local)
			if o.Copy && o.Notify {
				if _, err = i.tell(i.link.node.ctx, off, area.Len(), m.notice); err != nil {
					err = errors.Join(err, m.restore())
				}
			}
		}
	} else {
		m.update, err = i.link.node.newUpdate(m, o)
	}
	if err != nil {
		m.disclaim()
		return nil, err
	}
	i.mappings = append(i.mappings, m)
	return m, nil
}

// claim makes the area that of m.
func (m *Mapping) claim() error {
	n := m.in.link.node
	n.mu.Lock()
	defer n.mu.Unlock()
	b := n.blockOf(m.area)
	if b == nil {
		return fmt.Errorf("vmmc: map of %v, which Alloc did not return", m.area)
	}
	overlaps := func(o *Mapping) bool { return o.area.Overlaps(m.area) }
	if b.export != nil || slices.ContainsFunc(b.mappings, overlaps) {
		return fmt.Errorf("%w: %v", ErrInUse, m.area)
	}
	m.block = b
	b.mappings = append(b.mappings, m)
	return nil
}

func (m *Mapping) disclaim() {
	n := m.in.link.node
	n.mu.Lock()
	defer n.mu.Unlock()
	m.block.mappings = slices.DeleteFunc(m.block.mappings, func(o *Mapping) bool { return o == m })
}

// Flush returns when all stores before it have arrived in the memory of the exporter. If ctx ends first, they
// go on.
func (m *Mapping) Flush(ctx context.Context) error { return m.flush(ctx, m.area, false) }

// FlushRange is Flush for n bytes of the area from offset off, and for the pages that these lie in. It compares all
// of these, whoever wrote to them: a processor, or a device, of which the kernel does not tell. It costs less than
// Flush where the kernel tracks no writes.
func (m *Mapping) FlushRange(ctx context.Context, off, n uint64) error {
	if off > m.area.Len() || n > m.area.Len()-off {
		return fmt.Errorf("%w: flush of %d bytes at %d of %d", ErrBounds, n, off, m.area.Len())
	}
	start := m.area.Start + mem.Addr(off)
	return m.flush(ctx, mem.Range{Start: start, End: start + mem.Addr(n)}, true)
}

// flush sends what has changed in r: what the kernel tells of, or all.
func (m *Mapping) flush(ctx context.Context, r mem.Range, all bool) error {
	if m.update == nil {
		if err := m.alive(); err != nil || !m.notice.Notify {
			return err
		}
		op, err := m.in.tell(ctx, m.off+uint64(r.Start-m.area.Start), r.Len(), m.notice)
		if err != nil {
			return err
		}
		return op.Wait(ctx)
	}
	op, err := m.update.flush(ctx, r, all)
	if err != nil || op == nil {
		return err
	}
	return op.Wait(ctx)
}

// Store stores v at off of the area, a multiple of 8, and sends it at once. It comes after all that Flush,
// Publish and Store sent before, and before all that they send after it; plain stores have no order with it.
func (m *Mapping) Store(off uint64, v uint64) error {
	return m.store(context.Background(), off, v, false)
}

// Publish is Store after all stores before it: whoever sees v, by an atomic load, sees them, too. It returns
// when all has been sent out. If ctx ends first, v may not have been stored.
func (m *Mapping) Publish(ctx context.Context, off, v uint64) error {
	return m.store(ctx, off, v, true)
}

func (m *Mapping) store(ctx context.Context, off, v uint64, publish bool) error {
	if off%wordBytes != 0 || off >= m.area.Len() {
		return fmt.Errorf("%w: a word at %d of %d", ErrBounds, off, m.area.Len())
	}
	if m.update != nil {
		return m.update.store(ctx, int(off/wordBytes), v, publish)
	}
	if err := m.storeShared(off, v); err != nil || !m.notice.Notify {
		return err
	}
	op, err := m.in.tell(ctx, m.off+off, wordBytes, m.notice)
	if err != nil || !publish {
		return err
	}
	return op.out(ctx)
}

func (m *Mapping) storeShared(off, v uint64) error {
	m.in.mu.RLock() // the area stays mapped
	defer m.in.mu.RUnlock()
	if !slices.Contains(m.in.mappings, m) {
		return m.why()
	}
	words(m.area)[off/wordBytes].Store(v) // in the order of stores: those before it come first
	return nil
}

func (m *Mapping) alive() error {
	m.in.mu.RLock()
	defer m.in.mu.RUnlock()
	if !slices.Contains(m.in.mappings, m) {
		return m.why()
	}
	return nil
}

// why says why m ended.
func (m *Mapping) why() error {
	if err := m.in.Err(); err != nil {
		return err
	}
	return ErrUnmapped
}

// Unmap ends the automatic update, after it has sent what was stored before. The area has memory of its own
// again, which shows what it showed before. What other threads store meanwhile may be lost. It waits while the
// queue of the export is full, if MapOptions.Notify is set; Unimport ends that. A second Unmap
// does nothing, nor one after the end of the import, which unmaps without sending anything.
func (m *Mapping) Unmap() error {
	i := m.in
	if m.update != nil {
		// An import that has ended needs nothing any more; anything else is reported.
		if _, err := m.update.flush(i.link.node.ctx, m.area, false); err != nil && m.alive() == nil {
			return err
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	at := slices.Index(i.mappings, m)
	if at < 0 {
		return nil
	}
	if err := m.end(); err != nil {
		return err
	}
	i.mappings = slices.Delete(i.mappings, at, at+1)
	return nil
}

// end gives the area its own memory. Import.mu is held.
func (m *Mapping) end() error {
	if m.update != nil {
		m.update.end()
	} else if err := m.restore(); err != nil {
		return err
	}
	m.disclaim()
	return nil
}

func (m *Mapping) restore() error {
	n := m.in.link.node
	n.mu.Lock()
	defer n.mu.Unlock()
	return m.block.restore(m.area)
}
