package files

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"pinwheel/comm/files/internal/wire"
	"pinwheel/comm/vmmc"
)

// besieged is a server whose client sends what it likes. Beside its directory is one that it must not reach, with links
// to there.
type besieged struct {
	*world
	outside string
	node    *vmmc.Node
	client  *Client
	file    *File
	upload  *Upload
}

const secret = "secret"

func besiege(t testing.TB) *besieged {
	t.Helper()
	base := t.TempDir()
	s := &besieged{outside: filepath.Join(base, "outside")}
	dir := filepath.Join(base, "served")
	for _, err := range []error{
		os.Mkdir(dir, 0o755), os.Mkdir(s.outside, 0o755), os.WriteFile(filepath.Join(s.outside, secret), []byte(secret), 0o600),
		os.Symlink("../outside", filepath.Join(dir, "out")), os.Symlink("../outside/secret", filepath.Join(dir, "link")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	quiet := ways[0]
	quiet.node = func(t testing.TB, name string) vmmc.Options { return withWarn(ways[0].node(t, name)) }
	s.world = quiet.serveDir(t, dir, writable)
	s.write("f", random(1<<20))
	s.node = openNode(t, quiet.node(t, "client"))
	return s
}

// connect gives the client what its requests are about. The numbers of that are the same each time.
func (s *besieged) connect(t testing.TB) {
	t.Helper()
	if s.client != nil && s.server.Stats().OpenFiles == 4 {
		return
	}
	if s.client != nil {
		_ = s.client.Close() // the server may have closed it
	}
	var err error
	if s.client, err = Dial(testContext(t), s.node, s.address, ClientOptions{Peers: everybody}); err != nil {
		t.Fatal(err)
	}
	s.file = open(t, s.client, "f")
	s.upload = create(t, s.client, "new", CreateOptions{NoSync: true})
	if _, err := s.upload.WriteAt(testContext(t), []byte("x"), 0); err != nil {
		t.Fatal(err)
	}
	create(t, s.client, "other", CreateOptions{NoSync: true})
}

// request is one with a procedure of its own.
type request struct {
	procedure uint32
	wire.Message
}

// requests has one of each kind that a session takes, after its hello.
func (s *besieged) requests() []request {
	window, file, upload := s.client.window.handle, s.file.handle, s.upload.handle
	name := func(name string) wire.Message { return &wire.Name{Name: name} }
	return []request{
		{wire.ProcHello, &wire.Hello{Version: wire.Version}},
		{wire.ProcStat, name("out/secret")}, {wire.ProcOpen, name("link")}, {wire.ProcOpen, name("f")},
		{wire.ProcClose, &wire.Handle{Handle: 99}}, {wire.ProcList, &wire.List{Name: "."}},
		{wire.ProcWindow, &wire.Window{Export: 7, Bytes: 1 << 20}},
		{wire.ProcRead, &wire.Read{Handle: file, Len: 1 << 20, Window: window, At: 4096}},
		{wire.ProcRead, &wire.Read{Handle: file, Off: 99, Len: 100}},
		{wire.ProcReadMany, &wire.Names{Names: []string{"out/secret", "link", "../outside/secret"}, Kind: "crc32c"}},
		{wire.ProcTicket, &wire.DataConn{}}, {wire.ProcStream, &wire.Stream{Handle: file, Len: 100, Conn: upload}},
		{wire.ProcTicket, &wire.DataConn{Local: true}}, {wire.ProcDescriptor, &wire.Descriptor{Handle: file, Conn: upload}},
		{wire.ProcTaken, &wire.Taken{Handle: file, Bytes: 1 << 40}},
		{wire.ProcSum, &wire.Range{Handle: upload, Kind: "sha256", Len: 1}},
		{wire.ProcExtents, &wire.Position{Handle: file}},
		{wire.ProcMkdir, &wire.Create{Name: "out/d", Perm: 0o700}}, {wire.ProcSetAttr, &wire.SetAttr{Name: "out", Keep: 0o500}},
		{wire.ProcPut, &wire.Put{Create: wire.Create{Name: "out/x", Perm: 0o600, NoSync: true}, Kind: "none"}},
		{wire.ProcCreate, &wire.Create{Name: "out/y", Perm: 0o600, NoSync: true, ID: "../1"}},
		{wire.ProcStaging, &wire.Empty{}}, {wire.ProcWrite, &wire.Write{Handle: upload, Off: 5, Len: 100}},
		{wire.ProcCommit, &wire.Commit{Handle: upload, Size: 1, Kind: "none"}}, {wire.ProcAbort, &wire.Handle{Handle: upload}},
		{wire.ProcGrowth, &wire.Handle{Handle: file}},
	}
}

// Whatever a client sends, the server serves the next request, and nothing happens outside of what is served.
func FuzzRequests(f *testing.F) {
	s := besiege(f)
	s.connect(f)
	for _, r := range s.requests() {
		f.Add(r.procedure, wire.Append(nil, r))
	}
	f.Fuzz(func(t *testing.T, procedure uint32, request []byte) {
		s.connect(t)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond) // some take for ever, as they should
		defer cancel()
		_, _ = s.client.calls.Call(ctx, procedure%(wire.ProcGrowth+2), request, nil)
		if _, err := s.client.Stat(testContext(t), "."); err != nil {
			t.Fatalf("after %x: %v", request, err)
		}
		left, err := os.ReadDir(s.outside)
		if err != nil || len(left) != 1 {
			t.Fatalf("outside: %v, %v", left, err)
		}
		if b, err := os.ReadFile(filepath.Join(s.outside, secret)); err != nil || string(b) != secret {
			t.Fatalf("%q, %v", b, err)
		}
	})
}
