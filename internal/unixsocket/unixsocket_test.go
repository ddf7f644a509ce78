package unixsocket

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// path returns one that is short enough for sun_path.
func path(t *testing.T) string {
	dir, err := os.MkdirTemp("", "unixsocket")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "s")
}

func TestOnlySocketsThatNobodyListensOnAreReplaced(t *testing.T) {
	for _, network := range []string{"unix", "unixpacket"} {
		p := path(t)
		first, err := Listen(network, p)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Listen(network, p); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("%s: a socket that is in use: %v", network, err)
		}
		first.SetUnlinkOnClose(false) // as if it had been killed
		first.Close()
		second, err := Listen(network, p)
		if err != nil {
			t.Errorf("%s: a socket that was left: %v", network, err)
			continue
		}
		second.Close()
	}
	p := path(t)
	if err := os.WriteFile(p, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen("unix", p); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("a file: %v", err)
	}
}

func TestPeerIsThisProcess(t *testing.T) {
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
