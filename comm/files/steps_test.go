package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"pinwheel/comm/files/internal/wire"
	"pinwheel/comm/vmmc"
	"pinwheel/internal/testwait"
	"pinwheel/verbs/rdma/rdmatest"
)

const (
	// killsEnv makes the tests below kill at each step of each transport, and not of one of them.
	killsEnv = "PINWHEEL_FILES_KILLS"
	// peerStep tells a process of the test at which step it is killed: an index of steps, and whether that was served.
	peerStep = "FILES_TEST_STEP"
)

// step is a request of the protocol, and what a client does that has one sent.
type step struct {
	name      string
	procedure uint32
	by        string // the transport that has it; empty: all
	run       func(ctx context.Context, c *Client) error
}

// stepBytes are those of the file "new", which is uploaded.
var stepBytes = bytes.Repeat([]byte("0123456789abcdef~"), 100_000)

const stepSmall = "all of a small file"

// intoNew is a step on an upload to "new".
func intoNew(f func(ctx context.Context, u *Upload) error) func(context.Context, *Client) error {
	return func(ctx context.Context, c *Client) error {
		u, err := c.Create(ctx, "new", CreateOptions{})
		if err != nil {
			return err
		}
		defer u.Close()
		if _, err := u.WriteAt(ctx, stepBytes, 0); err != nil {
			return err
		}
		return f(ctx, u)
	}
}

// ofLarge is a step on the file "large".
func ofLarge(f func(ctx context.Context, f *File) error) func(context.Context, *Client) error {
	return func(ctx context.Context, c *Client) error {
		file, err := c.Open(ctx, "large")
		if err != nil {
			return err
		}
		defer file.Close()
		return f(ctx, file)
	}
}

func dialOnly(context.Context, *Client) error { return nil }

func readsLarge(ctx context.Context, f *File) error {
	_, err := f.CopyRange(ctx, io.Discard, 0, 3<<20)
	return err
}

var steps = []step{
	{"hello", wire.ProcHello, "", dialOnly},
	{"window", wire.ProcWindow, "", dialOnly},
	{"stat", wire.ProcStat, "", func(ctx context.Context, c *Client) error { _, err := c.Stat(ctx, "small"); return err }},
	{"open", wire.ProcOpen, "", ofLarge(func(context.Context, *File) error { return nil })},
	{"list", wire.ProcList, "", func(ctx context.Context, c *Client) error { _, err := c.ReadDir(ctx, "."); return err }},
	{"read", wire.ProcRead, "", ofLarge(func(ctx context.Context, f *File) error {
		w, err := f.client.NewWindow(ctx, 1<<20)
		if err != nil {
			return err
		}
		defer w.Close()
		_, err = f.ReadInto(ctx, w, 0, 0, 1<<20)
		return err
	})},
	{"descriptor", wire.ProcDescriptor, ByMemory, ofLarge(readsLarge)},
	{"taken", wire.ProcTaken, ByMemory, ofLarge(readsLarge)},
	{"ticket", wire.ProcTicket, BySendfile, ofLarge(readsLarge)},
	{"stream", wire.ProcStream, BySendfile, ofLarge(readsLarge)},
	{"checksum", wire.ProcSum, "", ofLarge(func(ctx context.Context, f *File) error {
		_, err := f.Checksum(ctx, CRC32C, 0, 1<<20)
		return err
	})},
	{"extents", wire.ProcExtents, "", ofLarge(func(ctx context.Context, f *File) error {
		for _, err := range f.Data(ctx, 0) {
			if err != nil {
				return err
			}
		}
		return nil
	})},
	{"ReadMany", wire.ProcReadMany, "", func(ctx context.Context, c *Client) error {
		return c.ReadMany(ctx, []string{"small", "small"}, CRC32C, func(_ int, _ Info, content []byte, err error) error {
			if err == nil && string(content) != stepSmall {
				err = fmt.Errorf("%q", content)
			}
			return err
		})
	}},
	{"mkdir", wire.ProcMkdir, "", func(ctx context.Context, c *Client) error { _, err := c.Mkdir(ctx, "d/e", 0o755); return err }},
	{"setAttr", wire.ProcSetAttr, "", func(ctx context.Context, c *Client) error {
		return c.SetAttr(ctx, ".", Attributes{Keep: 0o755})
	}},
	{"WriteFile", wire.ProcPut, "", func(ctx context.Context, c *Client) error {
		_, err := c.WriteFile(ctx, "new", []byte(stepSmall), CreateOptions{Sum: CRC32C})
		return err
	}},
	{"create", wire.ProcCreate, "", intoNew(func(context.Context, *Upload) error { return nil })},
	{"staging", wire.ProcStaging, "", intoNew(func(context.Context, *Upload) error { return nil })},
	{"write", wire.ProcWrite, "", intoNew(func(context.Context, *Upload) error { return nil })},
	{"abort", wire.ProcAbort, "", intoNew(func(ctx context.Context, u *Upload) error { return u.Abort(ctx) })},
	{"commit", wire.ProcCommit, "", intoNew(func(ctx context.Context, u *Upload) error {
		_, err := u.Commit(ctx, int64(len(stepBytes)), NoSum, nil)
		return err
	})},
	{"close", wire.ProcClose, "", ofLarge(func(ctx context.Context, f *File) error { // as closeHandle does, but it waits
		_, err := f.client.call(ctx, wire.ProcClose, "close", "", &wire.Handle{Handle: f.handle}, &wire.Empty{})
		return err
	})},
}

// namedStep returns the step of this process, if it has one.
func namedStep() (st step, served, named bool) {
	var i int
	k, _ := fmt.Sscan(os.Getenv(peerStep), &i, &served)
	if k < 2 {
		return st, false, false
	}
	return steps[i], served, true
}

// killAtStep has this process end at its step, if it has one.
func killAtStep() {
	if st, served, named := namedStep(); named {
		atRequest = func(procedure uint32, was bool) {
			if procedure == st.procedure && was == served {
				_ = unix.Kill(os.Getpid(), unix.SIGKILL)
				select {}
			}
		}
	}
}

// overEachStep runs a test for each step, before and after it was served: by each transport, or each by one of them.
func overEachStep(t *testing.T, f func(t *testing.T, w way, dir string, st step, served bool)) {
	for k, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			w.node(t, "") // it skips the test without its device
			for i, st := range steps {
				for turn, served := range []bool{false, true} {
					mine := st.by == w.name || st.by == "" && (os.Getenv(killsEnv) != "" || (i+2*turn)%len(ways) == k)
					if !mine {
						continue
					}
					t.Run(fmt.Sprintf("%s/served %v", st.name, served), func(t *testing.T) {
						dir := peerWorld(t, w)
						t.Setenv(peerStep, fmt.Sprint(i, served))
						if err := os.WriteFile(filepath.Join(dir, "served/small"), []byte(stepSmall), 0o644); err != nil {
							t.Fatal(err)
						}
						f(t, w, dir, st, served)
					})
				}
			}
		})
	}
}

// halfWritten fails if "new" is there, and is none of the files that steps upload. It returns whether it is there.
func halfWritten(t *testing.T, dir string) (there bool) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "served/new"))
	if err == nil && string(b) != stepSmall && !bytes.Equal(b, stepBytes) {
		t.Errorf("%d bytes have appeared", len(b))
	}
	return err == nil
}

// nothingLeft fails if this process has something of a directory open or mapped, or has registered anything.
func nothingLeft(t *testing.T, dir string) {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		if to, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && strings.HasPrefix(to, dir) {
			t.Errorf("%s is left open", to)
		}
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil || bytes.Contains(maps, []byte(dir)) {
		t.Errorf("of %s something is left mapped, or %v", dir, err)
	}
	if pinned, err := rdmatest.PinnedBytes(os.Getpid()); pinned != 0 || err != nil {
		t.Errorf("%d bytes are left pinned, %v", pinned, err)
	}
}

// serveHere serves a directory of processes from this one until end is called.
func serveHere(t *testing.T, dir string) (s *Server, n *vmmc.Node, end func()) {
	t.Helper()
	root, err := os.OpenRoot(filepath.Join(dir, "served"))
	if err != nil {
		t.Fatal(err)
	}
	n = openNode(t, peerNode("server"))
	if s, err = NewServer(n, root, peerServer()); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(testContext(t)) }()
	return s, n, sync.OnceFunc(func() {
		err := errors.Join(s.Close(), testwait.Receive(t, "the end of Serve", ended), root.Close(), n.Close())
		if st := s.Stats(); err != nil || st.PinnedBytes != 0 || st.OpenFiles != 0 {
			t.Errorf("%+v, %v", st, err)
		}
	})
}

// goesOn has a client do all that there is to do.
func goesOn(t *testing.T, w way, n *vmmc.Node, address string) {
	t.Helper()
	c, err := Dial(testContext(t), n, address, peerClient())
	if err != nil {
		t.Fatal(err)
	}
	w.uses(t, c)
	for _, st := range steps {
		if err := st.run(testContext(t), c); err != nil {
			t.Errorf("%s: %v", st.name, err)
		}
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

func TestServerThatIsKilledAtAStep(t *testing.T) {
	testwait.SkipUnderRace(t, "other tests run the same requests, to their ends")
	overEachStep(t, func(t *testing.T, w way, dir string, st step, served bool) {
		_, buried := testwait.Peer(t, peerRole+"=server")
		address, err := os.ReadFile(addressFile())
		if err != nil {
			t.Fatal(err)
		}
		n := openNode(t, peerNode("client"))
		c, err := Dial(testContext(t), n, string(address), peerClient())
		if err == nil {
			err = st.run(testContext(t), c)
			if cerr := c.Close(); cerr != nil {
				t.Error(cerr)
			}
		}
		if !errors.Is(err, ErrPeerGone) {
			t.Errorf("the client hears %v", err)
		}
		buried() // it has killed itself, but may have its socket still
		finished := served && (st.procedure == wire.ProcPut || st.procedure == wire.ProcCommit)
		if halfWritten(t, dir) != finished {
			t.Errorf("the file is there: %v", !finished)
		}
		testwait.Until(t, "all exports and imports have ended", func() bool {
			s := n.Stats()
			return len(s.Exports)+len(s.Imports) == 0
		}, func() any { return n.Stats() })
		s, of, end := serveHere(t, dir)
		defer end()
		goesOn(t, w, n, of.Addresses()[0])
		if err := n.Close(); err != nil {
			t.Error(err)
		}
		testwait.Until(t, "the client is gone", func() bool { return s.Stats().Clients == 0 })
		end()
		nothingLeft(t, dir)
	})
}

func TestClientThatIsKilledAtAStep(t *testing.T) {
	testwait.SkipUnderRace(t, "other tests run the same requests, to their ends")
	overEachStep(t, func(t *testing.T, w way, dir string, st step, served bool) {
		reached, killed := make(chan struct{}), make(chan struct{})
		var first sync.Once
		atRequest = func(procedure uint32, was bool) {
			if procedure == st.procedure && was == served {
				first.Do(func() { close(reached); <-killed })
			}
		}
		goOn := sync.OnceFunc(func() { close(killed) })
		s, n, end := serveHere(t, dir)
		defer func() {
			goOn()
			end()
			atRequest = func(uint32, bool) {}
		}()
		if err := os.WriteFile(addressFile(), []byte(n.Addresses()[0]), 0o600); err != nil {
			t.Fatal(err)
		}
		_, kill := testwait.Peer(t, peerRole+"=client")
		testwait.Receive(t, st.name, reached)
		kill()
		goOn()
		testwait.Until(t, "the client is gone", func() bool { return s.Stats().Clients == 0 })
		left := (&world{dir: filepath.Join(dir, "served")}).temporary()
		if open := s.Stats().OpenFiles; len(left) > 0 || open != 0 {
			t.Errorf("left: %q, %d open", left, open)
		}
		halfWritten(t, dir)
		other := openNode(t, peerNode("other"))
		goesOn(t, w, other, n.Addresses()[0])
		if err := other.Close(); err != nil {
			t.Error(err)
		}
		end()
		nothingLeft(t, dir)
	})
}
