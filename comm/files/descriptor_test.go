package files

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"pinwheel/comm/files/internal/wire"
	"pinwheel/internal/testwait"
)

// serveLocally serves files to clients on this machine.
func serveLocally(t *testing.T) *world { return ways[0].serve(t, writable) }

// byWindow fails unless the client, which has no descriptor of a file, gets it by its window.
func byWindow(t *testing.T, c *Client, name string, want []byte) {
	t.Helper()
	f := open(t, c, name)
	defer f.Close()
	got := make([]byte, len(want))
	if _, err := f.ReadAt(testContext(t), got, 0); err != nil {
		t.Fatal(err)
	}
	same(t, name, got, want)
	if f.own.file != nil {
		t.Errorf("%s was read by a descriptor", name)
	}
}

func TestDescriptorsAreForWhoIsOnThisMachine(t *testing.T) {
	for address, want := range map[string]bool{"unix:/run/s": true, "node:files": true, "tcp:[::1]:7": false} {
		d := listenLocal([]string{address}, func(m string) { t.Error(m) })
		if (d != nil) != want {
			t.Errorf("%s: descriptors %v", address, !want)
		}
		if d != nil {
			_ = d.Close() // nobody has connected
		}
	}
}

func TestDescriptorIsForReadingOnly(t *testing.T) {
	w := serveLocally(t)
	want := random(3<<20 + 1)
	w.write("f", want)
	c := w.client()
	f := open(t, c, "f")
	got := make([]byte, len(want))
	if _, err := f.ReadAt(testContext(t), got, 0); err != nil {
		t.Fatal(err)
	}
	same(t, "f", got, want)
	own := f.own.file
	if own == nil {
		t.Fatal("there is no descriptor")
	}
	if _, err := own.WriteAt([]byte("x"), 0); !errors.Is(err, syscall.EBADF) {
		t.Errorf("written: %v", err)
	}
	if err := unix.Ftruncate(int(own.Fd()), 0); err == nil {
		t.Error("truncated")
	}
	// What the client does to its descriptor is its own business.
	if _, err := own.Seek(1<<20, io.SeekStart); err != nil {
		t.Error(err)
	}
	if _, err := unix.FcntlInt(own.Fd(), unix.F_SETFL, unix.O_DIRECT); err != nil && !errors.Is(err, unix.EINVAL) {
		t.Error(err)
	}
	if b, err := f.Checksum(testContext(t), SHA256, 0, 100); err != nil || len(b) != 32 {
		t.Errorf("the server reads with its flags: %v", err)
	}
	if st := w.server.Stats(); st.BytesShared != int64(len(want)) || st.BytesSent != st.BytesShared {
		t.Errorf("%+v", st)
	}
}

// One connection serves for the descriptors of all files, and each is asked for once.
func TestDescriptorsAreUsedAgain(t *testing.T) {
	w := serveLocally(t)
	for _, name := range []string{"a", "b"} {
		w.write(name, random(1<<20))
	}
	c := w.client()
	for _, name := range []string{"a", "b"} {
		f := open(t, c, name)
		before := c.Stats().Requests
		for range 5 {
			if _, err := f.CopyRange(testContext(t), io.Discard, 0, 1<<20); err != nil {
				t.Fatal(err)
			}
		}
		want := map[string]int64{"a": 7, "b": 6}[name] // 5 to say what was taken, one for the descriptor, one for a ticket
		if n := c.Stats().Requests - before; n != want {
			t.Errorf("%s: %d requests, not %d", name, n, want)
		}
		if err := f.Close(); err != nil || f.own.file != nil {
			t.Error(f.own.file, err)
		}
	}
	// A File that nobody closes ends with its client.
	left := open(t, c, "a")
	if _, err := left.CopyRange(testContext(t), io.Discard, 0, 1<<20); err != nil {
		t.Fatal(err)
	}
	own := left.own.file
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if _, err := own.Stat(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("the descriptor is open: %v", err)
	}
	if _, err := left.CopyRange(testContext(t), io.Discard, 0, 1<<20); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}

func TestWhoHasNoDescriptorHasAWindow(t *testing.T) {
	w := serveLocally(t)
	want := random(1 << 20)
	w.write("f", want)
	w.write("renamed", want)
	t.Run("the socket can't be reached", func(t *testing.T) {
		c := w.client()
		c.local.address += "x" // as in another network namespace
		byWindow(t, c, "f", want)
	})
	t.Run("somebody else listens there", func(t *testing.T) {
		at := "@pinwheel-test-" + filepath.Base(w.dir)
		l, err := net.Listen("unix", at)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		rights := unix.UnixRights(int(fileOf(t, 1<<20).Fd()))
		go func() {
			conn, err := l.Accept()
			if err == nil {
				_, _, _ = conn.(*net.UnixConn).WriteMsgUnix([]byte{0}, rights, nil)
			}
		}()
		c := w.client()
		c.local.address = at
		byWindow(t, c, "f", want)
	})
	t.Run("the file has another name", func(t *testing.T) {
		c := w.client()
		f := open(t, c, "renamed")
		if err := os.Rename(filepath.Join(w.dir, "renamed"), filepath.Join(w.dir, "other")); err != nil {
			t.Fatal(err)
		}
		w.write("renamed", random(1<<20))
		var got bytes.Buffer
		// To rename it has changed its stamp on some file systems.
		if _, err := f.CopyRange(testContext(t), &got, 0, 1<<20); !errors.Is(err, ErrChanged) {
			same(t, "the file that was opened", got.Bytes(), want)
		}
	})
}

// A descriptor outlives permissions, so it is for the user that the server has only.
func TestOtherUsersGetNoDescriptor(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("to be another user needs root")
	}
	w := serveLocally(t)
	c := w.client()
	var ticket wire.Ticket
	if _, err := c.call(testContext(t), wire.ProcTicket, "test", "", &wire.DataConn{Local: true}, &ticket); err != nil {
		t.Fatal(err)
	}
	conns := make(chan net.Conn, 1)
	go func() {
		runtime.LockOSThread() // which ends with the goroutine, and with it what it has become
		const unchanged = ^uintptr(0)
		if _, _, e := syscall.RawSyscall(syscall.SYS_SETRESUID, unchanged, 65534, unchanged); e != 0 {
			t.Error(e)
		}
		conn, err := net.Dial("unix", c.local.address)
		if err != nil {
			t.Error(err)
		}
		conns <- conn
	}()
	conn := testwait.Receive(t, "a connection", conns)
	if conn == nil {
		return
	}
	defer conn.Close()
	_, err := conn.Write(ticket.Ticket) // it fails if the connection was closed at once
	if err == nil && !refused(t, conn) {
		t.Error("another user was let in")
	}
}

// breaking is a writer that does something once some bytes are there.
type breaking struct {
	bytes.Buffer
	after int
	do    func()
}

func (b *breaking) Write(p []byte) (int, error) {
	n, err := b.Buffer.Write(p)
	if b.Len() >= b.after {
		b.do()
	}
	return n, err
}

func TestChangesAreNoticedThroughADescriptor(t *testing.T) {
	w := serveLocally(t)
	path := filepath.Join(w.dir, "f")
	for name, change := range map[string]func() error{
		"truncated":   func() error { return os.Truncate(path, 1<<20) },
		"overwritten": func() error { return os.WriteFile(path, random(40<<20), 0o644) },
	} {
		t.Run(name, func(t *testing.T) {
			w.write("f", random(40<<20))
			settle(t, path)
			f := open(t, w.client(), "f")
			to := &breaking{after: 20 << 20}
			to.do = sync.OnceFunc(func() {
				if err := change(); err != nil {
					t.Error(err)
				}
			})
			if _, err := f.CopyRange(testContext(t), to, 0, 40<<20); !errors.Is(err, ErrChanged) {
				t.Error(err)
			}
		})
	}
}

// ranges is a writer of file ranges that fails after some bytes of each.
type ranges struct {
	bytes.Buffer
	most int64
	err  error
	n    int
}

func (r *ranges) WriteFileRange(f *os.File, off, n int64) (int64, error) {
	r.n++
	k, err := io.Copy(&r.Buffer, io.NewSectionReader(f, off, min(n, r.most)))
	if err == nil && k < n {
		err = r.err
	}
	return k, err
}

func TestWhatARangeWriterCannotTakeIsWritten(t *testing.T) {
	w := serveLocally(t)
	want := random(ownBytes + 1<<20)
	w.write("f", want)
	f := open(t, w.client(), "f")
	for _, most := range []int64{0, 1<<20 + 7, ownBytes} {
		r := &ranges{most: most, err: errors.ErrUnsupported}
		if n, err := f.CopyRange(testContext(t), r, 0, int64(len(want))); n != int64(len(want)) || err != nil {
			t.Errorf("%d bytes, %v", n, err)
		}
		same(t, "f", r.Bytes(), want)
		if calls := map[bool]int{true: 2, false: 1}[most == ownBytes]; r.n != calls {
			t.Errorf("it was asked %d times", r.n)
		}
	}
}

func TestManyReadThroughADescriptorAtATime(t *testing.T) {
	w := serveLocally(t)
	want := random(2 << 20)
	w.write("f", want)
	f := open(t, w.client(), "f")
	var readers sync.WaitGroup
	for k := range 8 {
		readers.Go(func() {
			off := int64(k) * 1000
			got := make([]byte, 1<<20)
			if _, err := f.ReadAt(testContext(t), got, off); err != nil || !bytes.Equal(got, want[off:off+1<<20]) {
				t.Error(k, err)
			}
		})
	}
	readers.Wait()
	// To close it fails those that are under way, or none.
	ended := make(chan error, 1)
	go func() {
		for {
			if _, err := f.CopyRange(context.Background(), io.Discard, 0, 1<<20); err != nil {
				ended <- err
				return
			}
		}
	}()
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if err := testwait.Receive(t, "the end of the reads", ended); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}
