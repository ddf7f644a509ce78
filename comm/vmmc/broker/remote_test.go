package broker

import (
	"errors"
	"io"
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"pinwheel/comm/vmmc/internal/identity"
	"pinwheel/internal/testwait"
)

const testToken = "0123456789abcdef0123456789abcdef"

// remoteBroker serves a node, and returns its socket, and where other nodes find it.
func remoteBroker(t *testing.T, name string) (path, address string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, Options{Remote: &Remote{Listener: l, Name: name, Token: testToken}}), l.Addr().String()
}

// Those who connect and say nothing take no place of those who do.
func TestStrangersKeepNoOtherNodeOut(t *testing.T) {
	here, _ := remoteBroker(t, "here")
	there, address := remoteBroker(t, "there")
	r, err := Register(within(t), there, Exporter{Name: "x", Nodes: []string{"here"}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for range 5 * maxStrangers {
		c, err := net.Dial("tcp", address)
		if errors.Is(err, syscall.EMFILE) {
			t.Skip("needs more descriptors: ulimit -n")
		}
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	c, err := Dial(within(t), here, Target{Host: address, UID: me(), Name: "x"})
	for range 2 { // a stranger who comes at the same moment may drive it out
		if err != nil {
			c, err = Dial(within(t), here, Target{Host: address, UID: me(), Name: "x"})
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	got, err := r.Accept()
	if err != nil || got.Peer != (Origin{me(), "here"}) {
		t.Fatalf("%+v, %v", got, err)
	}
	got.Close()
}

// A node names itself if no certificate does, with a name that exporters can be told.
func TestNodeWithABadNameIsRefused(t *testing.T) {
	_, address := remoteBroker(t, "there")
	for _, name := range []string{strings.Repeat("n", MaxName+1), "\x1b[2J"} {
		here, _ := remoteBroker(t, name)
		_, err := Dial(within(t), here, Target{Host: address, UID: me(), Name: "x"})
		if !errors.Is(err, ErrRefused) || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%.10q: %v", name, err)
		}
	}
}

func TestTicketIsGoodForOneConnection(t *testing.T) {
	here, _ := remoteBroker(t, "here")
	there, address := remoteBroker(t, "there")
	r, err := Register(within(t), there, Exporter{Name: "x", Nodes: []string{"here"}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	c, err := open(within(t), here, &message{Kind: dial, UID: me(), Name: "x", Host: address})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	m, _, err := c.answer(within(t))
	if err != nil {
		t.Fatal(err)
	}
	first, err := redeemed(within(t), &m)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	got, err := r.Accept()
	if err != nil || got.Peer != (Origin{me(), "here"}) || got.TLS == nil {
		t.Fatalf("%+v, %v", got, err)
	}
	defer got.Close()
	second, err := redeemed(within(t), &m)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if n, err := second.Read(make([]byte, 1)); n > 0 || err == nil {
		t.Errorf("a ticket that was used: %d, %v", n, err)
	}
}

func TestNonsenseFromAnotherNodeLeadsNowhere(t *testing.T) {
	_, address := remoteBroker(t, "there")
	for _, nonsense := range []string{
		"PWT1" + strings.Repeat("x", 16), strings.Repeat("\x16", 20), strings.Repeat("y", 1000),
	} {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write([]byte(nonsense)); err != nil {
			t.Fatal(err)
		}
		_ = c.(*net.TCPConn).CloseWrite()
		answer, _ := io.ReadAll(c) // to the end. TLS says with an alert what it thinks
		if len(answer) > 7 {
			t.Errorf("%.6q: %q", nonsense, answer)
		}
		c.Close()
	}
}

func TestBrokerNeedsAnIdentityForOtherNodes(t *testing.T) {
	for what, r := range map[string]*Remote{
		"nothing": {}, "a short token": {Name: "n", Token: "secret"}, "no name": {Token: testToken},
	} {
		if _, err := r.config(""); !errors.Is(err, identity.Err) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestServeClosesItsListenersWhateverItReturns(t *testing.T) {
	testwait.Bound(t)
	l, err := Listen(filepath.Join(t.TempDir(), "b"), false)
	if err != nil {
		t.Fatal(err)
	}
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := Serve(within(t), l, Options{Remote: &Remote{Listener: other}}); err == nil {
		t.Error("it served without an identity")
	}
	for _, l := range []net.Listener{l, other} {
		if c, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("%v: %v, %v", l.Addr(), c, err)
		}
	}
}
