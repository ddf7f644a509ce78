package transfer

import (
	"bytes"
	"context"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"pinwheel/comm/files"
	"pinwheel/comm/vmmc"
	"pinwheel/internal/testwait"
)

func TestMain(m *testing.M) {
	unix.Umask(0o022) // which the modes of copies depend on
	goleak.VerifyTestMain(m)
}

var mine = vmmc.Permissions{UIDs: []uint32{uint32(os.Geteuid())}}

// node opens one at a Unix socket, until the test ends.
func node(t *testing.T) *vmmc.Node {
	t.Helper()
	n, err := vmmc.Open(vmmc.Options{Listen: []string{"unix:" + filepath.Join(testwait.ShortDir(t), "s")}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	return n
}

// serve serves a new directory to a client, until the test ends.
func serve(t *testing.T) (dir string, c *files.Client) {
	t.Helper()
	dir, address := serveAt(t)
	return dir, dial(t, address)
}

// dial returns a client, which ends with the test.
func dial(t *testing.T, address string) *files.Client {
	t.Helper()
	c, err := files.Dial(t.Context(), node(t), address, files.ClientOptions{Peers: mine})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// serveAt serves a new directory, until the test ends.
func serveAt(t *testing.T) (dir, address string) {
	t.Helper()
	dir = t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	n := node(t)
	s, err := files.NewServer(n, root, files.ServerOptions{Peers: mine, AllowWrite: true})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error)
	go func() { served <- s.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := testwait.Receive(t, "the end of the server", served); err != nil {
			t.Error(err)
		}
		s.Close()
		root.Close()
	})
	return dir, n.Addresses()[0]
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// random returns bytes that are the same in every run.
func random(n int) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{byte(n)})
	_, _ = r.Read(b) // it never fails
	return b
}

// longAgo is a time that no file has by itself.
var longAgo = time.Date(2001, 2, 3, 4, 5, 6, 789, time.UTC)

func put(t *testing.T, path string, content []byte, mode fs.FileMode) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, content, 0o600), os.Chmod(path, mode),
		os.Chtimes(path, longAgo, longAgo))
}

// holds checks a file, with its mode and time.
func holds(t *testing.T, path string, content []byte, mode fs.FileMode) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, content) {
		t.Errorf("%s: %d bytes of %d, equal %v, %v", path, len(got), len(content), bytes.Equal(got, content), err)
		return
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != mode || !info.ModTime().Equal(longAgo) {
		t.Errorf("%s: %v, %v", path, info, err)
	}
}

// list returns what is below a directory, with a / after directories.
func list(t *testing.T, dir string) (all []string) {
	t.Helper()
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if path == dir {
			return err
		}
		name := strings.TrimPrefix(path, dir+"/")
		if err == nil && d.IsDir() {
			name += "/"
		}
		all = append(all, name)
		return err
	}))
	slices.Sort(all)
	return all
}

// is compares two sorted lists.
func is(t *testing.T, what string, got, want []string) {
	t.Helper()
	but := func(a, b []string) []string {
		return slices.DeleteFunc(slices.Clone(a), func(s string) bool { _, found := slices.BinarySearch(b, s); return found })
	}
	if more, less := but(got, want), but(want, got); len(more)+len(less) > 0 {
		t.Errorf("%s: %q are too much, %q are missing", what, more, less)
	}
}
