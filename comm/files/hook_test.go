package files

import (
	"errors"
	"os"
	"testing"

	"pinwheel/comm/vmmc"
	"pinwheel/internal/testwait"
)

// Whoever closes a node meanwhile finds a server and a client that are whole, or that fail and leave nothing: the test
// process looks for goroutines that are left.
func TestNodeIsClosedMeanwhile(t *testing.T) {
	w := ways[1].serve(t, ServerOptions{Warn: func(string) {}})
	root, err := os.OpenRoot(w.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	begin := map[string]func(n *vmmc.Node) error{
		"server": func(n *vmmc.Node) error {
			s, err := NewServer(n, root, ServerOptions{Peers: everybody, TrustedNetwork: true})
			if err == nil {
				err = s.Close()
			}
			return err
		},
		"client": func(n *vmmc.Node) error {
			c, err := Dial(testContext(t), n, w.address, ClientOptions{Peers: everybody, WindowBytes: minWindow})
			if err == nil {
				err = c.Close()
			}
			return err
		},
	}
	for range 30 {
		for what, f := range begin {
			n := openNode(t, withWarn(w.node(t, what)))
			ended, begun := make(chan error, 1), make(chan struct{})
			go func() { close(begun); ended <- f(n) }()
			<-begun
			if err := n.Close(); err != nil {
				t.Errorf("the node of a %s: %v", what, err)
			}
			err := testwait.Receive(t, "the end of its "+what, ended)
			if err != nil && !errors.Is(err, vmmc.ErrClosed) && !errors.Is(err, ErrClosed) && !errors.Is(err, ErrPeerGone) {
				t.Errorf("a %s: %v", what, err)
			}
		}
	}
}
