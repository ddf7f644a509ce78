package vmmcbench

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"slices"

	"pinwheel/comm/vmmc"
)

// stage is what a measurement sets up.
type stage struct {
	ctx  context.Context
	dir  string
	made int
	undo []func()
}

func (s *stage) later(f func()) { s.undo = append(s.undo, f) }

// end takes everything down, what was made last first.
func (s *stage) end() {
	for _, f := range slices.Backward(s.undo) {
		f()
	}
}

// Names of what messages go over.
const (
	shared     = "shared memory"
	unixSocket = "Unix socket"
	tcp        = "TCP" // for nodes, with TLS
	overRDMA   = "RDMA"
)

// listen returns an address of a network for net.Listen.
func (s *stage) listen(over string) (network, address string) {
	if over == tcp || over == overRDMA {
		return "tcp", "127.0.0.1:0"
	}
	s.made++
	return "unix", filepath.Join(s.dir, fmt.Sprintf("%s-%d", rand.Text()[:8], s.made))
}

// nodes opens both ends.
func (s *stage) nodes(over string) (n [2]*vmmc.Node, err error) {
	token := rand.Text() + rand.Text()
	for k, name := range [2]string{"a", "b"} {
		network, address := s.listen(over)
		n[k], err = vmmc.Open(vmmc.Options{
			Name: name, Listen: []string{network + ":" + address}, Token: token, NoRDMA: over != overRDMA,
		})
		if err != nil {
			return n, err
		}
		s.later(func() { n[k].Close() })
	}
	return n, nil
}

var both = vmmc.Permissions{Peers: []string{"a", "b"}}

// opposite is an export at each end, and the import of it at the other.
type opposite struct {
	memory [2][]byte
	to     [2]*vmmc.Import // to the memory of this number
	nodes  [2]*vmmc.Node
}

// importOf exports memory of size bytes of the second node, and imports it into the first. The memory is of Alloc,
// unless Unix sockets shall carry what is sent there.
func (s *stage) importOf(
	n [2]*vmmc.Node, over string, size int, o vmmc.ExportOptions,
) (b []byte, e *vmmc.Export, i *vmmc.Import, err error) {
	if over == unixSocket {
		b = make([]byte, size)
	} else if b, err = n[1].Alloc(uint64(size)); err != nil {
		return nil, nil, nil, err
	}
	if e, err = n[1].Export(1, b, both, o); err != nil {
		return nil, nil, nil, err
	}
	if i, err = n[0].Import(s.ctx, 1, n[1].Addresses()[0]); err != nil {
		return nil, nil, nil, err
	}
	return b, e, i, s.settle(i, over)
}

func (s *stage) opposite(over string) (p *opposite, err error) {
	p = new(opposite)
	if p.nodes, err = s.nodes(over); err != nil {
		return nil, err
	}
	for k, n := range p.nodes {
		p.memory[k], _, p.to[k], err = s.importOf([2]*vmmc.Node{p.nodes[1-k], n}, over, 4096, vmmc.ExportOptions{})
		if err != nil {
			return nil, err
		}
	}
	return p, nil
}

// sockets returns both ends of a connection.
func (s *stage) sockets(over string) (c, server net.Conn, err error) {
	network, address := s.listen(over)
	l, err := net.Listen(network, address)
	if err != nil {
		return nil, nil, err
	}
	defer l.Close()
	accepted := make(chan net.Conn, 1)
	go func() {
		server, _ := l.Accept()
		accepted <- server
	}()
	if c, err = net.Dial(network, l.Addr().String()); err != nil {
		return nil, nil, err
	}
	if server = <-accepted; server == nil {
		c.Close()
		return nil, nil, net.ErrClosed
	}
	s.later(func() { c.Close(); server.Close() })
	return c, server, nil
}

// onlyReader keeps io.Copy from splice(2): programs look at what they get.
type onlyReader struct{ io.Reader }
