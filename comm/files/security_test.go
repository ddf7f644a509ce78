package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"pinwheel/comm/files/internal/newfile"
	"pinwheel/comm/files/internal/wire"
	"pinwheel/comm/vmmc/rpc"
	"pinwheel/internal/testwait"
)

func TestNothingOutsideIsReached(t *testing.T) {
	w := ways[0].serve(t, writable)
	c := w.client()
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"up": "..", "abs": outside, "file": filepath.Join(outside, "secret")} {
		if err := os.Symlink(to, filepath.Join(w.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"file", "abs/secret", "up/x", "abs"} {
		if f, err := c.Open(testContext(t), name); err == nil {
			t.Errorf("open %s: %v", name, f.Info())
		}
		if i, err := c.Stat(testContext(t), name); !errors.Is(err, fs.ErrPermission) && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("stat %s: %v, %v", name, i, err)
		}
	}
	const says = "leads out of the directory that is served"
	for _, name := range []string{"abs", "up", "file"} {
		if _, err := c.Stat(testContext(t), name); err == nil || !strings.HasSuffix(err.Error(), name+": "+says) {
			t.Errorf("stat %s: %v", name, err)
		}
	}
	for _, name := range []string{"abs/new", "up/new"} {
		if _, err := c.WriteFile(testContext(t), name, []byte("x"), CreateOptions{}); err == nil {
			t.Errorf("%s was written", name)
		}
		if _, err := c.Mkdir(testContext(t), name, 0o755); err == nil {
			t.Errorf("%s was made", name)
		}
	}
	for _, name := range []string{"abs", "up"} {
		if err := c.SetAttr(testContext(t), name, Attributes{Keep: 0o700}); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%s was changed: %v", name, err)
		}
	}
	// A commit over a symbolic link replaces that, and not what it leads to.
	if _, err := c.WriteFile(testContext(t), "file", []byte("mine"), CreateOptions{}); err != nil {
		t.Error(err)
	}
	if b, _ := os.ReadFile(filepath.Join(outside, "secret")); string(b) != "secret" {
		t.Errorf("the file outside is %q", b)
	}
	if entries, _ := os.ReadDir(outside); len(entries) != 1 {
		t.Errorf("%d files are outside", len(entries))
	}
}

func TestNamesThatAreNoneAreRefusedByTheServer(t *testing.T) {
	w := ways[0].serve(t, writable)
	c := w.client()
	for _, name := range []string{
		"", "/etc/passwd", "..", "../x", "a/../b", "a//b", "a/", "./a", "a\x00b", newHidden(), "d/" + hiddenOf("f", "id"),
		strings.Repeat("x", 256), strings.Repeat("x/", 2047) + "x/x",
	} {
		// Past the checks of the client.
		for proc, q := range map[uint32]wire.Message{
			wire.ProcOpen: &wire.Name{Name: name}, wire.ProcStat: &wire.Name{Name: name},
			wire.ProcPut:   &wire.Put{Create: wire.Create{Name: name, Perm: 0o644}, Kind: "none"},
			wire.ProcMkdir: &wire.Create{Name: name}, wire.ProcSetAttr: &wire.SetAttr{Name: name},
			wire.ProcList: &wire.List{Name: name},
		} {
			_, err := c.call(testContext(t), proc, "test", name, q, &wire.Empty{})
			if err == nil || errors.Is(err, ErrPeerGone) {
				t.Errorf("%q: procedure %d: %v", name, proc, err)
			}
		}
		if _, err := c.Stat(testContext(t), name); err == nil {
			t.Errorf("%q has a stat", name)
		}
	}
	if entries, _ := os.ReadDir(w.dir); len(entries) != 0 {
		t.Errorf("%d files were made", len(entries))
	}
}

func TestReadOnlyIsTheDefault(t *testing.T) {
	w := ways[0].serve(t, ServerOptions{})
	c := w.client()
	if c.Writable() {
		t.Error("the server says that it takes uploads")
	}
	if _, err := c.WriteFile(testContext(t), "f", nil, CreateOptions{}); !errors.Is(err, syscall.EROFS) {
		t.Error(err)
	}
	if _, err := c.Create(testContext(t), "f", CreateOptions{}); !errors.Is(err, syscall.EROFS) {
		t.Error(err)
	}
	if _, err := c.Mkdir(testContext(t), "d", 0o755); !errors.Is(err, syscall.EROFS) {
		t.Error(err)
	}
	if err := c.SetAttr(testContext(t), ".", Attributes{}); !errors.Is(err, syscall.EROFS) {
		t.Error(err)
	}
	_, err := c.call(testContext(t), wire.ProcStaging, "test", "", &wire.Empty{}, &wire.Window{})
	if !errors.Is(err, syscall.EROFS) {
		t.Error(err)
	}
}

func TestRulesTellClientsApart(t *testing.T) {
	o := ServerOptions{AllowWrite: true, Authorize: func(peer string, a Access, name string) error {
		if peer == "other" && (a == Write || strings.HasPrefix(name, "private")) {
			return errors.New("not for others")
		}
		return nil
	}}
	overEach(t, o, func(t *testing.T, w *world) {
		w.write("private/f", []byte("x"))
		w.write("f", []byte("x"))
		c, other := w.client(), w.clientOf(openNode(t, w.node(t, "other")))
		for _, c := range []*Client{c, other} {
			mine := c != other
			for _, check := range []struct {
				allowed bool
				err     error
			}{
				{true, second(c.Open(testContext(t), "f"))},
				{mine, second(c.Open(testContext(t), "private/f"))},
				{mine, second(c.Stat(testContext(t), "private"))},
				{mine, second(c.WriteFile(testContext(t), "new", nil, CreateOptions{}))},
				{mine, second(c.Mkdir(testContext(t), "dir", 0o755))},
			} {
				if (check.err == nil) != check.allowed || check.err != nil && !errors.Is(check.err, fs.ErrPermission) {
					t.Errorf("mine %v, allowed %v: %v", mine, check.allowed, check.err)
				}
			}
		}
	})
}

func second[T any](_ T, err error) error { return err }

func TestWhatIsNoFileBlocksNobody(t *testing.T) {
	w := ways[0].serve(t, ServerOptions{})
	if err := unix.Mkfifo(filepath.Join(w.dir, "fifo"), 0o644); err != nil {
		t.Fatal(err)
	}
	w.write("d/x", nil)
	c := w.client()
	if _, err := c.Open(testContext(t), "fifo"); !errors.Is(err, syscall.EINVAL) {
		t.Error(err)
	}
	if _, err := c.Open(testContext(t), "d"); !errors.Is(err, syscall.EISDIR) {
		t.Error(err)
	}
	if _, err := c.Open(testContext(t), "none"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// What people write into stays what it is, also if it comes while an upload is under way.
func TestOnlyFilesAreReplacedByUploads(t *testing.T) {
	w := ways[0].serve(t, writable)
	c := w.client()
	refused := func(what string, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), "fifo: "+newfile.ErrNoFile.Error()) {
			t.Errorf("%s: %v", what, err)
		}
	}
	late := create(t, c, "fifo", CreateOptions{})
	path := filepath.Join(w.dir, "fifo")
	if err := unix.Mkfifo(path, 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := late.Commit(testContext(t), 0, NoSum, nil)
	refused("commit", err)
	_, err = c.Create(testContext(t), "fifo", CreateOptions{})
	refused("create", err)
	_, err = c.WriteFile(testContext(t), "fifo", nil, CreateOptions{})
	refused("write", err)
	if i, err := os.Lstat(path); err != nil || i.Mode().Type() != fs.ModeNamedPipe {
		t.Error(i, err)
	}
	if err := late.Abort(testContext(t)); err != nil || len(w.temporary()) > 0 {
		t.Error(err, w.temporary())
	}
}

// What a hostile client sends costs it a request, or its connection, and nobody else anything.
func TestHostileRequests(t *testing.T) {
	w := ways[0].serve(t, writable)
	w.write("f", random(1<<20))
	c, bad := w.client(), w.client()
	f := open(t, bad, "f")
	for _, check := range []struct {
		proc uint32
		q    wire.Message
	}{
		{wire.ProcRead, &wire.Read{Handle: f.handle, Len: 1 << 20, Window: bad.window.handle, At: bad.opt.WindowBytes}},
		{wire.ProcRead, &wire.Read{Handle: f.handle, Len: 1 << 62, Window: bad.window.handle}},
		{wire.ProcRead, &wire.Read{Handle: f.handle, Len: wire.MaxSmall + 1}},
		{wire.ProcRead, &wire.Read{Handle: f.handle, Len: -1}},
		{wire.ProcRead, &wire.Read{Handle: bad.window.handle, Len: 1}},
		{wire.ProcRead, &wire.Read{Handle: 99, Len: 1}},
		{wire.ProcRead, &wire.Read{Handle: f.handle, Len: 1, Window: f.handle}},
		{wire.ProcWrite, &wire.Write{Handle: f.handle, Len: 1}},
		{wire.ProcCommit, &wire.Commit{Handle: f.handle}},
		{wire.ProcList, &wire.List{Name: "f", Handle: f.handle}},
		{wire.ProcExtents, &wire.Position{Handle: bad.window.handle}},
		{wire.ProcTicket, &wire.DataConn{}},
		{wire.ProcStream, &wire.Stream{Handle: f.handle, Conn: 7}},
		{wire.ProcTicket, &wire.DataConn{Local: true}},
		{wire.ProcDescriptor, &wire.Descriptor{Handle: f.handle, Conn: f.handle}},
		{wire.ProcDescriptor, &wire.Descriptor{Handle: bad.window.handle, Conn: 7}},
		{wire.ProcTaken, &wire.Taken{Handle: bad.window.handle, Bytes: 1}},
		{wire.ProcTaken, &wire.Taken{Handle: f.handle, Bytes: -1}},
		{wire.ProcHello, &wire.Hello{Version: 99}},
		{wire.ProcAbort + 1, &wire.Empty{}},
		{wire.ProcRead, &wire.Empty{}}, // malformed
	} {
		if _, err := bad.call(testContext(t), check.proc, "test", "", check.q, &wire.Moved{}); err == nil {
			t.Errorf("%d %+v was served", check.proc, check.q)
		}
	}
	p := make([]byte, 100)
	if _, err := open(t, c, "f").ReadAt(testContext(t), p, 0); err != nil {
		t.Error(err)
	}
}

func TestLimitsOfAClient(t *testing.T) {
	w := ways[0].serve(t, ServerOptions{MaxOpen: 4, AllowWrite: true})
	w.write("f", nil)
	c := w.client()
	var opened []*File
	var err error
	for err == nil {
		var f *File
		if f, err = c.Open(testContext(t), "f"); err == nil {
			opened = append(opened, f)
		}
	}
	if !errors.Is(err, syscall.EMFILE) || len(opened) != 3 { // and the window
		t.Errorf("%d files are open, %v", len(opened), err)
	}
	_, err = c.Create(testContext(t), "new", CreateOptions{})
	if !errors.Is(err, syscall.EMFILE) || len(w.temporary()) != 0 {
		t.Error(err, w.temporary())
	}
	if err := opened[0].Close(); err != nil {
		t.Error(err)
	}
	testwait.Until(t, "there is room again", func() bool {
		f, err := c.Open(testContext(t), "f")
		if err == nil {
			err = f.Close()
		}
		return err == nil
	})
}

func TestClientsThatAreTooManyHearThat(t *testing.T) {
	w := ways[0].serve(t, ServerOptions{MaxClients: 2})
	first := w.client()
	w.client()
	n := openNode(t, w.node(t, "client"))
	if _, err := Dial(testContext(t), n, w.address, ClientOptions{Peers: everybody}); !errors.Is(err, syscall.EUSERS) {
		t.Error(err)
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	testwait.Until(t, "the first has left", func() bool { return w.server.Stats().Clients == 1 })
	w.client()
}

// Who says no hello is served nothing.
func TestHelloComesFirst(t *testing.T) {
	w := ways[0].serve(t, ServerOptions{})
	n := openNode(t, w.node(t, "client"))
	c, err := rpc.Dial(testContext(t), n, w.address, DefaultService, streamOptions(everybody, "", nil), rpcOptions())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	reply, err := c.Call(testContext(t), wire.ProcStat, wire.Append(nil, &wire.Name{Name: "."}), nil)
	if err != nil {
		t.Fatal(err)
	}
	if s, _, err := wire.Split(reply); err != nil || syscall.Errno(s.Code) != syscall.EPROTO {
		t.Error(s, err)
	}
}

func TestServerThatLiesAboutNames(t *testing.T) {
	for _, name := range []string{"..", "a/b", "/etc", "a\x00", ""} {
		if _, err := infoOf(&wire.Info{Name: name}); !errors.Is(err, ErrProtocol) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func FuzzNames(f *testing.F) {
	for _, s := range []string{".", "a/b", "../a", newHidden(), "a//b", "\x00", "Gr\xfc\xdfe"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if checkName(name) == nil {
			// Those of package io/fs, but for their bytes.
			if !fs.ValidPath(strings.ToValidUTF8(name, "?")) || !filepath.IsLocal(name) || isHidden(filepath.Base(name)) {
				t.Errorf("%q is a name", name)
			}
		} else if fs.ValidPath(name) && len(name) < 255 && !strings.Contains(name, "\x00") && !strings.Contains(name, hidden) {
			t.Errorf("%q is no name", name)
		}
		if i, err := infoOf(&wire.Info{Name: name}); err == nil && (filepath.Base(i.Name()) != i.Name() || i.Name() == "..") {
			t.Errorf("%q is an element", name)
		}
	})
}
