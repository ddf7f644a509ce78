package files

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"pinwheel/comm/vmmc"
	"pinwheel/internal/testwait"
)

// These tell a process of the test what it is, where it finds things, and how it reaches the other one.
const (
	peerRole = "FILES_TEST_PEER"
	peerDir  = "FILES_TEST_DIR"
	peerWay  = "FILES_TEST_WAY"
)

// peerNode are the options of a node of either process. A server over TCP listens where its process finds a port, and
// writes its address to a file.
func peerNode(role string) vmmc.Options {
	if way := os.Getenv(peerWay); way != ByMemory {
		o := loopback(role, way != ByRDMA)
		o.Heartbeat = testwait.Limit / 2
		return withWarn(o)
	}
	return withWarn(vmmc.Options{Name: role, Listen: []string{"unix:" + filepath.Join(os.Getenv(peerDir), role)}})
}

func peerServer() ServerOptions {
	return ServerOptions{Peers: everybody, AllowWrite: true, TrustedNetwork: os.Getenv(peerWay) == BySendfile}
}

func peerClient() ClientOptions {
	return ClientOptions{Peers: everybody, TrustedNetwork: os.Getenv(peerWay) == BySendfile}
}

func addressFile() string { return filepath.Join(os.Getenv(peerDir), "address") }

// peer is what another process of a test does: it serves, or it uploads without an end.
func peer(role string) {
	dir := os.Getenv(peerDir)
	check := func(err error) {
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	n, err := vmmc.Open(peerNode(role))
	check(err)
	switch role {
	case "server":
		root, err := os.OpenRoot(filepath.Join(dir, "served"))
		check(err)
		killAtStep()
		s, err := NewServer(n, root, peerServer())
		check(err)
		go s.Serve(context.Background())
		check(os.WriteFile(addressFile(), []byte(n.Addresses()[0]), 0o600))
	case "client":
		address, err := os.ReadFile(addressFile())
		check(err)
		if st, _, named := namedStep(); named {
			go func() { // which the test ends
				if c, err := Dial(context.Background(), n, string(address), peerClient()); err == nil {
					_ = st.run(context.Background(), c)
				}
			}()
			break
		}
		c, err := Dial(context.Background(), n, string(address), peerClient())
		check(err)
		u, err := c.Create(context.Background(), "f", CreateOptions{})
		check(err)
		_, err = u.WriteAt(context.Background(), make([]byte, 1<<20), 0)
		check(err)
		go u.CopyFrom(context.Background(), zeros{}, 0, 1<<40)
		f, err := c.Open(context.Background(), "large")
		check(err)
		slow := writer(func([]byte) error { time.Sleep(time.Millisecond); return nil })
		go f.CopyRange(context.Background(), slow, 0, 1<<40)
		go f.Checksum(context.Background(), SHA256, 0, 1<<40)
		u, err = c.Create(context.Background(), "g", CreateOptions{})
		check(err)
		go u.Commit(context.Background(), 1<<40, SHA256, nil)
	}
	testwait.Ready()
}

// zeros is a source without an end, that writes the same again and again.
type zeros struct{}

func (zeros) ReadAt(b []byte, off int64) (int, error) {
	clear(b)
	time.Sleep(time.Millisecond)
	return len(b), nil
}

func peerWorld(t *testing.T, w way) (dir string) {
	testwait.Bound(t)
	w.node(t, "") // it skips the test without its device
	dir = testwait.ShortDir(t)
	t.Setenv(peerDir, dir)
	t.Setenv(peerWay, w.name)
	if err := os.Mkdir(filepath.Join(dir, "served"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "served", "large"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(dir, "served", "large"), 1<<40); err != nil {
		t.Fatal(err)
	}
	return dir
}

// overEachKind runs a test of processes over each transport.
func overEachKind(t *testing.T, f func(t *testing.T, w way)) {
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) { f(t, w) })
	}
}

// uses waits until bytes come the way that a test is about.
func (w way) uses(t *testing.T, c *Client) {
	t.Helper()
	f := open(t, c, "large")
	testwait.Until(t, w.name, func() bool {
		if _, err := f.ReadAt(testContext(t), make([]byte, 1<<20), 0); err != nil {
			t.Fatal(err)
		}
		return c.Transport() == w.name
	})
}

// sentBy returns how many bytes a server has sent in a way.
func sentBy(st Stats, w way) int64 {
	return map[string]int64{
		ByMemory: st.BytesShared, ByTLS: st.BytesTLS, BySendfile: st.BytesSendfile, ByRDMA: st.BytesRDMA,
	}[w.name]
}

// soon has something done while a request is under way that takes for ever.
func soon(f func()) { time.AfterFunc(20*time.Millisecond, f) }

func TestServerThatIsKilled(t *testing.T) {
	steps := map[string]func(t *testing.T, c *Client, kill func()) error{
		"idle": func(t *testing.T, c *Client, kill func()) error {
			kill()
			_, err := c.Stat(testContext(t), ".")
			return err
		},
		"with a file open": func(t *testing.T, c *Client, kill func()) error {
			f := open(t, c, "large")
			kill()
			_, err := f.ReadAt(testContext(t), make([]byte, 1<<20), 0)
			return err
		},
		"in a read": func(t *testing.T, c *Client, kill func()) error {
			_, err := open(t, c, "large").CopyRange(testContext(t), writer(func([]byte) error { kill(); return nil }), 0, 1<<40)
			return err
		},
		"in a checksum": func(t *testing.T, c *Client, kill func()) error {
			f := open(t, c, "large")
			soon(kill)
			_, err := f.Checksum(testContext(t), SHA256, 0, 1<<40)
			return err
		},
		"in an upload": func(t *testing.T, c *Client, kill func()) error {
			u := create(t, c, "f", CreateOptions{})
			soon(kill)
			_, err := u.CopyFrom(testContext(t), zeros{}, 0, 1<<40)
			return err
		},
		"before the commit": func(t *testing.T, c *Client, kill func()) error {
			u := create(t, c, "f", CreateOptions{})
			if _, err := u.WriteAt(testContext(t), []byte("x"), 0); err != nil {
				t.Fatal(err)
			}
			kill()
			_, err := u.Commit(testContext(t), 1, NoSum, nil)
			return err
		},
		"in the commit": func(t *testing.T, c *Client, kill func()) error {
			u := create(t, c, "f", CreateOptions{})
			soon(kill)
			_, err := u.Commit(testContext(t), 1<<40, SHA256, nil)
			return err
		},
	}
	overEachKind(t, func(t *testing.T, w way) {
		for step, run := range steps {
			t.Run(step, func(t *testing.T) {
				dir := peerWorld(t, w)
				_, kill := testwait.Peer(t, peerRole+"=server")
				address, err := os.ReadFile(addressFile())
				if err != nil {
					t.Fatal(err)
				}
				n := openNode(t, peerNode("client"))
				c, err := Dial(testContext(t), n, string(address), peerClient())
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				w.uses(t, c)
				if err := run(t, c, kill); !errors.Is(err, ErrPeerGone) {
					t.Errorf("%v", err)
				}
				if _, err := os.Stat(filepath.Join(dir, "served", "f")); err == nil {
					t.Error("a file has appeared that was not committed")
				}
			})
		}
	})
}

// The client is killed while it reads, uploads, and waits for a checksum and a commit.
func TestClientThatIsKilledLeavesNothing(t *testing.T) {
	overEachKind(t, func(t *testing.T, w way) {
		dir := peerWorld(t, w)
		root, err := os.OpenRoot(filepath.Join(dir, "served"))
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		n := openNode(t, peerNode("server"))
		s, err := NewServer(n, root, peerServer())
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(addressFile(), []byte(n.Addresses()[0]), 0o600); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error)
		go func() { ended <- s.Serve(testContext(t)) }()
		_, kill := testwait.Peer(t, peerRole+"=client")
		if st := s.Stats(); st.Clients != 1 || st.OpenFiles < 3 {
			t.Errorf("%+v", st)
		}
		testwait.Until(t, w.name, func() bool {
			return sentBy(s.Stats(), w) > 0
		})
		kill()
		testwait.Until(t, "the client is gone", func() bool { return s.Stats().Clients == 0 })
		served := &world{dir: filepath.Join(dir, "served")}
		if left := served.temporary(); len(left) > 0 || s.Stats().OpenFiles != 0 {
			t.Errorf("left: %q, %d open", left, s.Stats().OpenFiles)
		}
		for _, name := range []string{"f", "g"} {
			if _, err := os.Stat(filepath.Join(dir, "served", name)); err == nil {
				t.Errorf("%s has appeared, which was not committed", name)
			}
		}
		// The server goes on.
		other, err := Dial(testContext(t), openNode(t, peerNode("other")), n.Addresses()[0], peerClient())
		if err != nil {
			t.Fatal(err)
		}
		w.uses(t, other)
		if err := errors.Join(other.Close(), s.Close()); err != nil {
			t.Error(err)
		}
		if err := testwait.Receive(t, "the end of Serve", ended); err != nil {
			t.Error(err)
		}
		if st := s.Stats(); st.PinnedBytes != 0 {
			t.Errorf("%d bytes are left pinned", st.PinnedBytes)
		}
	})
}
