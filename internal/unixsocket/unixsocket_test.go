package unixsocket

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"go.uber.org/atomic"

	"pinwheel/internal/testwait"
)

func path(t *testing.T) string { return filepath.Join(testwait.ShortDir(t), "s") }

// leave makes the socket of a process that was killed.
func leave(t *testing.T, network, p string) {
	t.Helper()
	l, err := Listen(network, p)
	if err != nil {
		t.Fatal(err)
	}
	l.UnixListener.Close()
}

func TestCloseRemovesItsOwnSocketOnly(t *testing.T) {
	testwait.Bound(t)
	p := path(t)
	first, err := Listen("unix", p)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(p); err != nil {
		t.Fatal(err)
	}
	second, err := Listen("unix", p)
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	if c, err := net.Dial("unix", p); err != nil {
		t.Errorf("the second is not found: %v", err)
	} else {
		c.Close()
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(p); !os.IsNotExist(err) {
		t.Errorf("the second is left: %v", err)
	}
	if err := second.Close(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("closed again: %v", err)
	}
}

func TestSocketThatNobodyListensOnIsReplaced(t *testing.T) {
	testwait.Bound(t)
	for _, network := range []string{"unix", "unixpacket"} {
		p := path(t)
		leave(t, network, p)
		l, err := Listen(network, p)
		if err != nil {
			t.Errorf("%s: a socket that was left: %v", network, err)
			continue
		}
		if _, err := Listen(network, p); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("%s: a socket that is in use: %v", network, err)
		}
		l.Close()
	}
}

// connect(2) answers ECONNREFUSED for whatever is no socket.
func TestWhatIsNoSocketStays(t *testing.T) {
	testwait.Bound(t)
	for what, put := range map[string]func(p string) error{
		"a file":            func(p string) error { return os.WriteFile(p, []byte("mine"), 0o600) },
		"a directory":       func(p string) error { return os.Mkdir(p, 0o700) },
		"a FIFO":            func(p string) error { return syscall.Mkfifo(p, 0o600) },
		"a link to nothing": func(p string) error { return os.Symlink("nothing", p) },
	} {
		p := path(t)
		if err := put(p); err != nil {
			t.Fatal(err)
		}
		before, err := os.Lstat(p)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Listen("unix", p); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("%s: %v", what, err)
		}
		if after, err := os.Lstat(p); err != nil || !os.SameFile(before, after) {
			t.Errorf("%s is gone: %v", what, err)
		}
	}
}

// Of many that start over the same stale socket, one gets it, and is the one that is found there.
func TestOneOfManyReplacesASocket(t *testing.T) {
	testwait.Bound(t)
	for range 20 {
		p := path(t)
		leave(t, "unix", p)
		var won atomic.Pointer[Listener]
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				l, err := Listen("unix", p)
				if err == nil && !won.CompareAndSwap(nil, l) {
					t.Error("two listen at the same path")
					l.UnixListener.Close()
				}
				if err != nil && !errors.Is(err, syscall.EADDRINUSE) {
					t.Error(err)
				}
			})
		}
		all.Wait()
		l := won.Load()
		if l == nil {
			t.Fatal("nobody listens")
		}
		c, err := net.Dial("unix", p)
		if err != nil {
			t.Error("the one who listens is not found:", err)
		} else {
			c.Close()
		}
		l.Close()
	}
}

func TestNothingIsReplacedWithoutTheLock(t *testing.T) {
	testwait.Bound(t)
	p := path(t)
	leave(t, "unix", p)
	unlock, locked := lockDir(filepath.Dir(p))
	defer unlock()
	if !locked {
		t.Fatal("a directory of the test can't be locked")
	}
	if _, err := Listen("unix", p); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("somebody else holds the lock: %v", err)
	}
}

func TestPeerIsThisProcess(t *testing.T) {
	testwait.Bound(t)
	p := path(t)
	l, err := Listen("unix", p)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("unix", p)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	who, err := Peer(c.(*net.UnixConn))
	if err != nil || int(who.Uid) != os.Geteuid() || int(who.Pid) != os.Getpid() {
		t.Errorf("%+v, %v", who, err)
	}
}

func TestLongPathSaysWhatToDo(t *testing.T) {
	dir := testwait.ShortDir(t)
	for bytes, ok := range map[int]bool{MaxPath: true, MaxPath + 1: false} {
		p := dir + "/" + strings.Repeat("s", bytes-len(dir)-1)
		l, err := Listen("unix", p)
		if ok != (err == nil) || err != nil && !strings.Contains(err.Error(), p+": a socket's path may have 107 bytes") {
			t.Errorf("%d bytes: %v", bytes, err)
		}
		if err == nil {
			l.Close()
		}
	}
}
