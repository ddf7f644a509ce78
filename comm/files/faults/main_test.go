package faults

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"pinwheel/comm/files"
	"pinwheel/comm/vmmc"
	"pinwheel/internal/testwait"
)

const token = "0123456789abcdef0123456789abcdef"

// heartbeat is the silence after which a peer is gone: more than a guest is busy with anything else.
const heartbeat = 6 * time.Second

// inGuests skips a test outside of so many guests.
func inGuests(t *testing.T, nodes string) {
	t.Helper()
	if os.Getenv("TESTBED_NODES") != nodes {
		t.Skipf("needs %s guests of the test bed (make test-guest test-guests)", nodes)
	}
}

// shell runs a line of the shell as root of a guest, and returns what it prints.
func shell(t *testing.T, line string) string {
	t.Helper()
	out, err := testwait.Command(t, "sh", "-ec", line).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", line, err, out)
	}
	return string(bytes.TrimSpace(out))
}

// later runs a line of the shell at the end of the test, whatever becomes of it.
func later(t *testing.T, line string) {
	t.Cleanup(func() { _ = exec.Command("sh", "-c", line).Run() })
}

// content is that of a file of n bytes, the same on all nodes.
func content(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{7}).Read(b) // it never fails
	return b
}

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

// same fails if a file has another content.
func same(t *testing.T, path string, want []byte) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s: %d bytes, not the %d that were served, %v", path, len(got), len(want), err)
	}
}

func open(t *testing.T, name, address string) *vmmc.Node {
	t.Helper()
	n, err := vmmc.Open(vmmc.Options{
		Name: name, Token: token, Listen: []string{address}, Heartbeat: heartbeat,
		Warn: func(m string) { t.Logf("%s: %s", name, m) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() }) // a peer may be gone
	return n
}

// serve serves a directory until the test ends, and returns its address.
func serve(t *testing.T, dir, address string) (s *files.Server, at string) {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	n := open(t, "server", address)
	s, err = files.NewServer(n, root, files.ServerOptions{
		Peers: vmmc.Permissions{Peers: []string{"client"}}, AllowWrite: true,
		Warn: func(m string) { t.Logf("server: %s", m) },
	})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(context.Background()) }()
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := testwait.Receive(t, "the end of Serve", ended); err != nil {
			t.Error(err)
		}
		if st := s.Stats(); st.Clients != 0 || st.OpenFiles != 0 || st.PinnedBytes != 0 {
			t.Errorf("%d clients, %d open files and %d pinned bytes are left", st.Clients, st.OpenFiles, st.PinnedBytes)
		}
	})
	return s, n.Addresses()[0]
}

func dial(t *testing.T, n *vmmc.Node, address string) *files.Client {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testwait.Limit/2)
	defer cancel()
	c, err := files.Dial(ctx, n, address, files.ClientOptions{Peers: vmmc.Permissions{Peers: []string{"server"}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() }) // its peer may be gone
	return c
}

// awaitRDMA gets a file of n bytes until that comes by RDMA.
func awaitRDMA(t *testing.T, c *files.Client, name string, n int) {
	t.Helper()
	f, err := c.Open(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() // only read from
	testwait.Until(t, "RDMA", func() bool {
		if k, err := f.CopyRange(t.Context(), io.Discard, 0, int64(n)); k != int64(n) || err != nil {
			t.Fatal(k, err)
		}
		return c.Transport() == files.ByRDMA
	})
}

// partials are the names of unfinished files in a directory.
func partials(t *testing.T, dir string) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, ".*"))
	if err != nil {
		t.Fatal(err)
	}
	return all
}
