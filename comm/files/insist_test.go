package files

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"pinwheel/comm/vmmc"
)

func requireRDMA(o *ClientOptions) { o.RequireRDMA, o.TrustedNetwork = true, false }

// dialFails has a client of a node fail to connect for want of RDMA.
func (w *world) dialFails(n *vmmc.Node, o ClientOptions, says string) {
	w.t.Helper()
	o.Peers = everybody
	c, err := Dial(testContext(w.t), n, w.address, o)
	if err == nil {
		c.Close()
	}
	if !errors.Is(err, ErrNoRDMA) || !strings.Contains(err.Error(), says) {
		w.t.Errorf("%v", err)
	}
}

// Without a device there is nothing to wait for.
func TestWhoInsistsOnRDMAHearsThatThereIsNone(t *testing.T) {
	for _, way := range ways {
		if way.name == ByRDMA {
			continue
		}
		t.Run(way.name, func(t *testing.T) {
			w := way.serve(t, ServerOptions{})
			w.dialFails(openNode(t, way.node(t, "client")), ClientOptions{RequireRDMA: true}, "the server has no device")
			root, err := os.OpenRoot(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			defer root.Close()
			_, err = NewServer(openNode(t, way.node(t, "other")), root, ServerOptions{Peers: everybody, RequireRDMA: true})
			if !errors.Is(err, ErrNoRDMA) {
				t.Errorf("a server: %v", err)
			}
		})
	}
}

func TestServerInsistsOnRDMA(t *testing.T) {
	rdma := overRDMA(t)
	w := rdma.serve(t, ServerOptions{RequireRDMA: true})
	w.dialFails(openNode(t, loopback("client", true)), ClientOptions{}, "the server insists on RDMA: files: no RDMA: this end")
	w.dialFails(openNode(t, loopback("client", true)), ClientOptions{TrustedNetwork: true}, "the server insists on RDMA")
	o := rdma.node(t, "client")
	o.MaxPinned = 64 << 10 // 64 KiB: the window is not registered
	w.dialFails(openNode(t, o), ClientOptions{}, "the server insists on RDMA: files: no RDMA for 5s")
	content := random(much)
	w.write("f", content)
	c := w.client()
	var got bytes.Buffer
	if n, err := open(t, c, "f").CopyRange(testContext(t), &got, 0, much); n != much || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	same(t, "f", got.Bytes(), content)
	if st := w.server.Stats(); st.BytesRDMA != much || st.BytesSent != much {
		t.Errorf("%+v", st)
	}
}

// The server has no room for what it would have to register.
func TestUploadsOfWhoInsistsOnRDMAFailWithoutIt(t *testing.T) {
	rdma := overRDMA(t)
	node := rdma.node
	rdma.node = func(t testing.TB, name string) vmmc.Options {
		o := node(t, name)
		if name == "server" {
			o.MaxPinned = 64 << 10 // 64 KiB
		}
		return o
	}
	w := rdma.serve(t, ServerOptions{AllowWrite: true})
	content := random(much)
	c := w.client(requireRDMA)
	u := create(t, c, "f", CreateOptions{})
	if n, err := u.WriteAt(testContext(t), content, 0); n != 0 || !errors.Is(err, ErrNoRDMA) {
		t.Errorf("%d bytes, %v", n, err)
	}
	if _, err := c.WriteFile(testContext(t), "small", content[:SmallBytes], CreateOptions{}); err != nil {
		t.Errorf("what comes inside of a request: %v", err)
	}
	u = create(t, w.client(), "f", CreateOptions{})
	if n, err := u.WriteAt(testContext(t), content, 0); n != much || err != nil {
		t.Errorf("whoever does not insist: %d bytes, %v", n, err)
	}
}

// RDMA that is down for a moment is waited for. Nothing takes another way meanwhile.
func TestRDMAThatIsInsistedOnIsWaitedFor(t *testing.T) {
	rdma := overRDMA(t)
	node := rdma.node
	rdma.node = func(t testing.TB, name string) vmmc.Options { return withWarn(node(t, name)) }
	w := rdma.serve(t, ServerOptions{AllowWrite: true})
	content := random(much)
	w.write("f", content)
	c := w.client(requireRDMA)
	f := open(t, c, "f")
	for range 2 {
		lost := make(chan error, 1)
		go func() { lost <- w.loseRDMA(testContext(t)) }()
		for ended := false; !ended; {
			select {
			case err := <-lost:
				if ended = true; err != nil {
					t.Fatal(err)
				}
			default:
			}
			var got bytes.Buffer
			if n, err := f.CopyRange(testContext(t), &got, 0, much); n != much || err != nil {
				t.Fatalf("%d bytes by %s, %v", n, c.Transport(), err)
			}
			same(t, "f", got.Bytes(), content)
		}
	}
	u := create(t, c, "g", CreateOptions{})
	if n, err := u.WriteAt(testContext(t), content, 0); n != much || err != nil {
		t.Errorf("an upload: %d bytes, %v", n, err)
	}
	if _, err := u.Commit(testContext(t), much, NoSum, nil); err != nil {
		t.Error(err)
	}
	same(t, "g", w.content("g"), content)
	if st := w.server.Stats(); st.BytesTLS > 0 || st.Errors > 0 {
		t.Errorf("%+v", st)
	}
}
