package files

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"pinwheel/comm/vmmc"
	"pinwheel/internal/testwait"
	"pinwheel/verbs/rdma/rdmatest"
)

func TestMain(m *testing.M) {
	if role := os.Getenv(peerRole); role != "" {
		peer(role)
	}
	goleak.VerifyTestMain(m)
}

// testContext returns a context that ends with the test, or when that waits for too long.
func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), testwait.Limit/2)
	t.Cleanup(cancel)
	return ctx
}

const testToken = "0123456789abcdef0123456789abcdef"

// way is how clients reach a server in a test.
type way struct {
	name    string // as Client.Transport has it
	node    func(t testing.TB, name string) vmmc.Options
	trusted bool
}

func loopback(name string, noRDMA bool) vmmc.Options {
	return vmmc.Options{Name: name, Token: testToken, Listen: []string{"tcp:127.0.0.1:0"}, NoRDMA: noRDMA}
}

var ways = []way{
	{ByMemory, func(t testing.TB, name string) vmmc.Options {
		return vmmc.Options{Name: name, Listen: []string{"unix:" + filepath.Join(testwait.ShortDir(t), "s")}}
	}, false},
	{ByTLS, func(_ testing.TB, name string) vmmc.Options { return loopback(name, true) }, false},
	{BySendfile, func(_ testing.TB, name string) vmmc.Options { return loopback(name, true) }, true},
	{ByRDMA, func(t testing.TB, name string) vmmc.Options {
		rdmatest.Need(t)
		return loopback(name, false)
	}, false},
}

func openNode(t testing.TB, o vmmc.Options) *vmmc.Node {
	t.Helper()
	if o.Warn == nil {
		o.Warn = func(m string) { t.Errorf("the node warned: %s", m) }
	}
	if o.Heartbeat == 0 {
		o.Heartbeat = testwait.Limit / 2 // no machine is so busy
	}
	n, err := vmmc.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

// world is a server of a directory.
type world struct {
	way
	t       testing.TB
	dir     string // that is served
	address string
	server  *Server
}

var everybody = vmmc.Permissions{Peers: []string{"server", "client", "other"}}

// serve serves a new directory.
func (w way) serve(t testing.TB, o ServerOptions) *world {
	t.Helper()
	testwait.Bound(t)
	return w.serveDir(t, t.TempDir(), o)
}

func (w way) serveDir(t testing.TB, dir string, o ServerOptions) *world {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	n := openNode(t, w.node(t, "server"))
	if len(o.Peers.Peers) == 0 {
		o.Peers = everybody
	}
	if o.Warn == nil {
		o.Warn = func(m string) { t.Errorf("the server warned: %s", m) }
	}
	o.TrustedNetwork = o.TrustedNetwork || w.trusted
	s, err := NewServer(n, root, o)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	go func() { ended <- s.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := testwait.Receive(t, "the end of Serve", ended); err != nil {
			t.Error(err)
		}
		if st := s.Stats(); st.Clients != 0 || st.OpenFiles != 0 || st.PinnedBytes != 0 {
			t.Errorf("%d clients, %d open files and %d pinned bytes are left", st.Clients, st.OpenFiles, st.PinnedBytes)
		}
	})
	return &world{w, t, dir, n.Addresses()[0], s}
}

// client connects another client.
func (w *world) client(o ...func(*ClientOptions)) *Client {
	w.t.Helper()
	return w.clientOf(openNode(w.t, w.node(w.t, "client")), o...)
}

func (w *world) clientOf(n *vmmc.Node, change ...func(*ClientOptions)) *Client {
	w.t.Helper()
	o := ClientOptions{Peers: everybody, TrustedNetwork: w.trusted}
	for _, f := range change {
		f(&o)
	}
	c, err := Dial(testContext(w.t), n, w.address, o)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if err := c.Close(); err != nil {
			w.t.Error(err)
		}
	})
	return c
}

// overEach runs a test over each transport.
func overEach(t *testing.T, o ServerOptions, f func(t *testing.T, w *world)) {
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) { f(t, w.serve(t, o)) })
	}
}

func random(n int) []byte {
	b := make([]byte, n)
	rand.Read(b)
	return b
}

// write makes a file that is served.
func (w *world) write(name string, content []byte) {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, content, 0o644)); err != nil {
		w.t.Fatal(err)
	}
}

// sparse makes a file of many bytes that takes no room.
func (w *world) sparse(name string, bytes int64) string {
	w.t.Helper()
	w.write(name, nil)
	path := filepath.Join(w.dir, name)
	if err := os.Truncate(path, bytes); err != nil {
		w.t.Fatal(err)
	}
	settle(w.t, path)
	return path
}

// settle waits until a change of a file makes another stamp, whatever the clock of the kernel.
func settle(t testing.TB, path string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s, err := stampOf(f)
	if err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, "the clock of the kernel moves on", func() bool { return s.settled(time.Now()) })
}

func (w *world) content(name string) []byte {
	w.t.Helper()
	b, err := os.ReadFile(filepath.Join(w.dir, name))
	if err != nil {
		w.t.Fatal(err)
	}
	return b
}

// temporary returns the hidden files that are served.
func (w *world) temporary() (names []string) {
	_ = filepath.WalkDir(w.dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && isHidden(d.Name()) {
			names = append(names, path)
		}
		return nil
	})
	return names
}

func open(t testing.TB, c *Client, name string) *File {
	t.Helper()
	f, err := c.Open(testContext(t), name)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// same fails if two contents differ, without printing them.
func same(t testing.TB, what string, got, want []byte) {
	t.Helper()
	if !bytes.Equal(got, want) {
		t.Errorf("%s: %d bytes, not the %d that were expected", what, len(got), len(want))
	}
}
