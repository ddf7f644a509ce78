package vmmc

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"pinwheel/mem"
)

// block is memory of Alloc: a memfd of its own, mapped shared. It can be given to importers whole, and so
// serves one export at a time.
type block struct {
	fd     int
	area   mem.Range // whole pages
	data   []byte    // as Mmap returned it
	export *Export   // nil: not exported
	// mappings lie over parts of the area. A block has them or an export, never both: what came in would go
	// out again.
	mappings []*Mapping
}

const readWrite = unix.PROT_READ | unix.PROT_WRITE

// newMemfd makes a file in memory that can neither shrink nor grow: whoever maps it need not fear SIGBUS.
func newMemfd(size uint64) (fd int, err error) {
	const flags = unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	// Without MFD_NOEXEC_SEAL, Linux 6.3 and newer complain, or refuse (vm.memfd_noexec); those before don't know it.
	fd, err = unix.MemfdCreate("pinwheel-vmmc", flags|unix.MFD_NOEXEC_SEAL)
	if errors.Is(err, unix.EINVAL) {
		fd, err = unix.MemfdCreate("pinwheel-vmmc", flags)
	}
	if err != nil {
		return -1, os.NewSyscallError("memfd_create", err)
	}
	if err = os.NewSyscallError("ftruncate", unix.Ftruncate(fd, int64(size))); err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL)
		err = os.NewSyscallError("F_ADD_SEALS", err)
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

func newBlock(size uint64) (*block, error) {
	whole := (size + mem.PageSize - 1) &^ (mem.PageSize - 1)
	if size == 0 || whole < size || int(whole) < 0 {
		return nil, fmt.Errorf("vmmc: %w: %d bytes", mem.ErrOverflow, size)
	}
	fd, err := newMemfd(whole)
	if err != nil {
		return nil, err
	}
	data, err := unix.Mmap(fd, 0, int(whole), readWrite, unix.MAP_SHARED)
	if err != nil {
		unix.Close(fd)
		return nil, os.NewSyscallError("mmap", err)
	}
	return &block{fd: fd, area: mem.RangeOf(data), data: data}, nil
}

func (b *block) free() error {
	return errors.Join(os.NewSyscallError("munmap", unix.Munmap(b.data)), os.NewSyscallError("close", unix.Close(b.fd)))
}

// part maps a part of whole pages of the block once more, elsewhere.
func (b *block) part(r mem.Range) ([]byte, error) {
	data, err := unix.Mmap(b.fd, int64(r.Start-b.area.Start), int(r.Len()), readWrite, unix.MAP_SHARED)
	return data, os.NewSyscallError("mmap", err)
}

// renew gives the block other memory with the same content, at the same addresses. Whoever had mapped the
// old memory can't reach it any more. What the program writes meanwhile may be lost.
func (b *block) renew() error {
	fd, err := newMemfd(b.area.Len())
	if err != nil {
		return err
	}
	old := *b
	b.fd = fd
	if err := b.restore(b.area); err != nil {
		*b = old
		return errors.Join(err, unix.Close(fd))
	}
	return unix.Close(old.fd)
}

// restore puts the block's own memory at r, a part of it, with the content that is there now.
func (b *block) restore(r mem.Range) error {
	own, err := b.part(r)
	if err != nil {
		return err
	}
	defer unix.Munmap(own)
	copy(own, r.Bytes())
	return mapOver(b.fd, uint64(r.Start-b.area.Start), r)
}

// importedMemory is the memory of an exporter on this machine.
type importedMemory struct {
	fd    int
	start uint64 // of the export, in the file
	data  []byte // the pages of it, as Mmap returned them
	bytes []byte // the export
}

// mapImported maps n bytes of a file from start. It takes the descriptor over, also if it fails.
func mapImported(fd int, start, n uint64) (*importedMemory, error) {
	err := checkMemory(fd, start, n)
	first := start &^ (mem.PageSize - 1)
	var data []byte
	if err == nil {
		data, err = unix.Mmap(fd, int64(first), int(start-first+n), readWrite, unix.MAP_SHARED)
		err = os.NewSyscallError("mmap", err)
	}
	if err == nil {
		keepFromChildren(data)
	}
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	return &importedMemory{fd: fd, start: start, data: data, bytes: data[start-first:][:n:n]}, nil
}

// keepFromChildren leaves pages that a peer shares out of the address space of children of a fork: the peer can't know
// that they are there, and takes the memory for its own when this process has ended.
func keepFromChildren(data []byte) {
	_ = unix.Madvise(data, unix.MADV_DONTFORK) // it fails for nothing that is mapped whole
}

// checkMemory refuses files of other processes that have no n bytes at start, or could shrink under a mapping.
func checkMemory(fd int, start, n uint64) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return os.NewSyscallError("fstat", err)
	}
	seals, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
	if err != nil || seals&unix.F_SEAL_SHRINK == 0 {
		return fmt.Errorf("vmmc: the shared memory can shrink: seals %#x, %v", seals, err)
	}
	if start > uint64(st.Size) || n > uint64(st.Size)-start {
		return fmt.Errorf("%w: %d bytes at %d of a file of %d", ErrBounds, n, start, st.Size)
	}
	return nil
}

func (m *importedMemory) unmap() error {
	return errors.Join(os.NewSyscallError("munmap", unix.Munmap(m.data)), os.NewSyscallError("close", unix.Close(m.fd)))
}

// Alloc returns memory of size bytes, at the start of a page, that importers on this machine can share and
// that Map can use. It lives until Free or Close; Go's collector does not know it. An export of it gives
// those who import it access to the whole pages: give each export memory of its own.
func (n *Node) Alloc(size uint64) ([]byte, error) {
	b, err := newBlock(size)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil, errors.Join(ErrClosed, b.free())
	}
	n.blocks = append(n.blocks, b)
	return b.data[:size:size], nil
}

// Free takes back what Alloc returned. It fails with ErrInUse while that is exported or mapped, and with ErrClosed after
// the end of the node, which has freed it.
func (n *Node) Free(memory []byte) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	b := n.blockOf(mem.RangeOf(memory))
	switch {
	case b == nil && n.closed:
		return ErrClosed
	case b == nil || b.area.Start != mem.RangeOf(memory).Start:
		return fmt.Errorf("vmmc: free of %v, which Alloc did not return", mem.RangeOf(memory))
	case b.export != nil || len(b.mappings) > 0:
		return fmt.Errorf("%w: %v", ErrInUse, b.area)
	}
	n.blocks = slices.DeleteFunc(n.blocks, func(o *block) bool { return o == b })
	return b.free()
}

// blockOf returns the block that has r, or nil. n.mu is held.
func (n *Node) blockOf(r mem.Range) *block {
	for _, b := range n.blocks {
		if b.area.Contains(r) {
			return b
		}
	}
	return nil
}
