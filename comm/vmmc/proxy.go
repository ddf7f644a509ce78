package vmmc

import (
	"context"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"pinwheel/mem"
)

// proxy is a range of destination proxy space (§4): addresses without memory that stand for an import.
type proxy struct {
	in   *Import
	area mem.Range
	data []byte // as Mmap returned it
}

// Proxy returns the addresses that stand for the export in SendTo. They are reserved by the first call, and
// free after the end of the import. Touching them is a fault.
func (i *Import) Proxy() (mem.Range, error) {
	n := i.link.node
	n.mu.Lock()
	defer n.mu.Unlock()
	at := slices.IndexFunc(n.proxies, func(p proxy) bool { return p.in == i })
	if at >= 0 {
		return n.proxies[at].area, nil
	}
	if err := i.Err(); err != nil {
		return mem.Range{}, err
	}
	data, err := unix.Mmap(-1, 0, int(i.bytes), unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return mem.Range{}, os.NewSyscallError("mmap", err)
	}
	p := proxy{i, mem.RangeOf(data), data}
	n.proxies = append(n.proxies, p)
	return p.area, nil
}

// SendTo is Send for a destination in destination proxy space: SendMsg of §4.2.
func (n *Node) SendTo(ctx context.Context, src []byte, dest mem.Addr, o SendOptions) error {
	n.mu.Lock()
	at := slices.IndexFunc(n.proxies, func(p proxy) bool { return p.area.Start <= dest && dest < p.area.End })
	if at < 0 {
		n.mu.Unlock()
		return fmt.Errorf("%w: no import has the proxy address %#x", ErrBounds, uintptr(dest))
	}
	p := n.proxies[at]
	n.mu.Unlock()
	return p.in.Send(ctx, src, uint64(dest-p.area.Start), o)
}

// freeProxy gives the proxy addresses of an import back.
func (n *Node) freeProxy(i *Import) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.proxies = slices.DeleteFunc(n.proxies, func(p proxy) bool {
		if p.in == i {
			_ = unix.Munmap(p.data) // it fails for nothing that we mapped
		}
		return p.in == i
	})
}
