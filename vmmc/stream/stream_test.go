package stream

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/net/nettest"

	"pinwheel/internal/testwait"
	"pinwheel/verbs/rdma/rdmatest"
	"pinwheel/vmmc"
	"pinwheel/vmmc/broker/brokertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(brokertest.Main{M: m}) }

const service = 80

var everyone = Options{Peers: vmmc.Permissions{Peers: []string{"a", "b"}}}

// networks are those over which streams go: shared memory, and connections.
var networks = map[string]func(t testing.TB) string{
	"shared": func(t testing.TB) string { return "unix:" + filepath.Join(testwait.ShortDir(t), "s") },
	"tcp":    func(testing.TB) string { return "tcp:127.0.0.1:0" },
	"names":  func(testing.TB) string { return "node:" + rand.Text() },
	"rdma": func(t testing.TB) string {
		rdmatest.Need(t)
		return "tcp:127.0.0.1:0"
	},
}

func openNode(t testing.TB, name, network string) *vmmc.Node {
	t.Helper()
	n, err := vmmc.Open(vmmc.Options{
		Name: name, Listen: []string{networks[network](t)}, Token: "0123456789abcdef0123456789abcdef",
		Broker: brokertest.Socket, Heartbeat: testwait.Limit / 2, Warn: func(m string) { t.Logf("warned: %s", m) },
		NoRDMA: network == "tcp",
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

func listen(t testing.TB, n *vmmc.Node, o Options) *Listener {
	t.Helper()
	l, err := Listen(n, service, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func context1(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), testwait.Limit/2)
	t.Cleanup(cancel)
	return ctx
}

// pipe returns both ends of a connection.
func pipe(t testing.TB, network string, o Options) (dialled, accepted *Conn, a, b *vmmc.Node) {
	t.Helper()
	testwait.Bound(t)
	a, b = openNode(t, "a", network), openNode(t, "b", network)
	l := listen(t, b, o)
	dialled, err := Dial(context1(t), a, b.Addresses()[0], service, o)
	if err != nil {
		t.Fatal(err)
	}
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	accepted = c.(*Conn)
	t.Cleanup(func() { dialled.Close(); accepted.Close() })
	return dialled, accepted, a, b
}

func TestConnIsOne(t *testing.T) {
	for network := range networks {
		t.Run(network, func(t *testing.T) {
			testwait.Bound(t)
			a, b := openNode(t, "a", network), openNode(t, "b", network)
			l := listen(t, b, everyone)
			nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
				if c1, err = Dial(context.Background(), a, b.Addresses()[0], service, everyone); err != nil {
					return nil, nil, nil, err
				}
				if c2, err = l.Accept(); err != nil {
					return nil, nil, nil, err
				}
				return c1, c2, func() { c1.Close(); c2.Close() }, nil
			})
		})
	}
}

func TestHalfCloseLetsTheAnswerThrough(t *testing.T) {
	for network := range networks {
		t.Run(network, func(t *testing.T) {
			c, s, _, _ := pipe(t, network, everyone)
			want := bytes.Repeat([]byte("half close "), 100_000)
			go func() {
				got, err := io.ReadAll(s)
				if err == nil {
					_, err = s.Write(got)
				}
				if err := errors.Join(err, s.Close()); err != nil {
					t.Error(err)
				}
			}()
			if _, err := c.Write(want); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(c.CloseWrite(), c.CloseWrite()); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Write([]byte("more")); !errors.Is(err, syscall.EPIPE) {
				t.Errorf("a Write after CloseWrite: %v", err)
			}
			if got, err := io.ReadAll(c); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d bytes came back of %d, %v", len(got), len(want), err)
			}
		})
	}
}

func TestWriterWaitsForARingOfRoom(t *testing.T) {
	for network := range networks {
		t.Run(network, func(t *testing.T) {
			o := everyone
			o.Ring = 10_000
			c, s, _, _ := pipe(t, network, o)
			if err := c.SetWriteDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
				t.Fatal(err)
			}
			n, err := c.Write(make([]byte, 1<<20))
			if n != o.Ring || !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatalf("%d bytes were written to one who does not read, %v", n, err)
			}
			if err := c.SetWriteDeadline(time.Time{}); err != nil {
				t.Fatal(err)
			}
			go c.Write([]byte("end"))
			got := make([]byte, o.Ring+3)
			if _, err := io.ReadFull(s, got); err != nil || string(got[o.Ring:]) != "end" {
				t.Errorf("%q, %v", got[o.Ring:], err)
			}
		})
	}
}

func TestClosedPeerEndsReadsAndWrites(t *testing.T) {
	for network := range networks {
		t.Run(network, func(t *testing.T) {
			c, s, _, _ := pipe(t, network, everyone)
			if _, err := s.Write([]byte("last words")); err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(c); string(got) != "last words" || err != nil {
				t.Errorf("read %q, %v", got, err)
			}
			if _, err := c.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
				t.Errorf("Write: %v", err)
			}
			if err := s.Close(); !errors.Is(err, net.ErrClosed) {
				t.Errorf("a second Close: %v", err)
			}
			if _, err := s.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
				t.Errorf("Read after Close: %v", err)
			}
		})
	}
}

// Who dials gets what a server says that closes at once.
func TestServerThatClosesAtOnceIsHeard(t *testing.T) {
	for network := range networks {
		t.Run(network, func(t *testing.T) {
			testwait.Bound(t)
			a, b := openNode(t, "a", network), openNode(t, "b", network)
			l := listen(t, b, everyone)
			go func() {
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					_, _ = io.WriteString(c, "busy")
					c.Close()
				}
			}()
			for range 20 {
				c, err := Dial(context1(t), a, b.Addresses()[0], service, everyone)
				if err != nil {
					t.Fatal(err)
				}
				if got, err := io.ReadAll(c); string(got) != "busy" || err != nil {
					t.Errorf("%q, %v", got, err)
				}
				c.Close()
			}
		})
	}
}

// A peer that ends without closing is an error, not the end of the stream.
func TestPeerThatIsGoneIsNoEnd(t *testing.T) {
	for network := range networks {
		t.Run(network, func(t *testing.T) {
			c, _, _, b := pipe(t, network, everyone)
			read := make(chan error)
			go func() {
				_, err := c.Read(make([]byte, 1))
				read <- err
			}()
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
			if err := testwait.Receive(t, "the Read", read); err == nil || err == io.EOF {
				t.Errorf("Read: %v", err)
			}
			if _, err := c.Write([]byte("x")); err == nil {
				t.Errorf("Write: %v", err)
			}
		})
	}
}

// Nothing is lost of a connection that is closed, and its node right after it.
func TestNodeThatClosesSendsWhatWasWritten(t *testing.T) {
	for network := range networks {
		t.Run(network, func(t *testing.T) {
			for range 20 {
				c, s, a, _ := pipe(t, network, everyone)
				if _, err := io.WriteString(c, "last words"); err != nil {
					t.Fatal(err)
				}
				if err := errors.Join(c.Close(), a.Close()); err != nil {
					t.Fatal(err)
				}
				if got, err := io.ReadAll(s); string(got) != "last words" || err != nil {
					t.Fatalf("read %q, %v", got, err)
				}
			}
		})
	}
}

func TestNodeThatClosesEndsAccept(t *testing.T) {
	testwait.Bound(t)
	b := openNode(t, "b", "shared")
	l := listen(t, b, everyone)
	accepted := make(chan error)
	go func() {
		_, err := l.Accept()
		accepted <- err
	}()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if err := testwait.Receive(t, "the end of Accept", accepted); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}

func TestAbortIsNoEndOfTheStream(t *testing.T) {
	for network := range networks {
		t.Run(network, func(t *testing.T) {
			c, s, _, _ := pipe(t, network, everyone)
			if err := c.Abort(); err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(s); err == nil {
				t.Errorf("read %q, and then the end", got)
			}
			if err := c.Close(); !errors.Is(err, net.ErrClosed) {
				t.Errorf("Close after Abort: %v", err)
			}
		})
	}
}

// A peer that gives no credits back keeps the memory of a closed connection only for Options.Timeout.
func TestClosedConnGivesItsMemoryBack(t *testing.T) {
	for network := range networks {
		t.Run(network, func(t *testing.T) {
			testwait.Bound(t)
			a, b := openNode(t, "a", network), openNode(t, "b", network)
			o := everyone
			o.Timeout = 100 * time.Millisecond
			l := listen(t, b, o)
			const inbox = firstInbox + 1
			memory, err := a.Alloc(ringAt + minRing)
			if err != nil {
				t.Fatal(err)
			}
			e, err := a.Export(inbox, memory, everyone.Peers, vmmc.ExportOptions{Queue: 1})
			if err != nil {
				t.Fatal(err)
			}
			e.Block() // the answer takes the only credit
			door, err := a.Import(context1(t), service, b.Addresses()[0])
			if err != nil {
				t.Fatal(err)
			}
			r := request{inbox, a.Addresses()[0]}
			if err := door.Send(context1(t), r.encode(), 0, vmmc.SendOptions{Notify: true}); err != nil {
				t.Fatal(err)
			}
			c, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			c.Close()
			testwait.Until(t, "the listener forgets the connection", func() bool {
				l.mu.Lock()
				defer l.mu.Unlock()
				return len(l.known) == 0
			})
		})
	}
}

// gate is a way to an address over which nothing goes while it is shut.
type gate struct {
	l    net.Listener
	shut sync.RWMutex // held for writing: nothing goes
}

func newGate(t *testing.T, to string) (g *gate, address string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g = &gate{l: l}
	var all sync.WaitGroup
	carry := func(to, from net.Conn) {
		defer to.Close()
		for b := make([]byte, 4096); ; {
			n, err := from.Read(b)
			if err != nil {
				return
			}
			g.shut.RLock()
			_, err = to.Write(b[:n])
			g.shut.RUnlock()
			if err != nil {
				return
			}
		}
	}
	all.Go(func() {
		for {
			a, err := l.Accept()
			if err != nil {
				return
			}
			b, err := net.Dial("tcp", to[len("tcp:"):])
			if err != nil {
				a.Close()
				continue
			}
			all.Go(func() { carry(a, b) })
			all.Go(func() { carry(b, a) })
		}
	})
	t.Cleanup(func() { l.Close(); all.Wait() })
	return g, "tcp:" + l.Addr().String()
}

// A bulk sender of the same node that sends until vmmc.ErrTooManyOps delays a stream, and does not stop it.
func TestStreamsGoOnAfterTooManyOps(t *testing.T) {
	testwait.Bound(t)
	b := openNode(t, "b", "tcp")
	g, address := newGate(t, b.Addresses()[0])
	a := openNode(t, "a", "tcp")
	l := listen(t, b, everyone)
	c, err := Dial(context1(t), a, address, service, everyone)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	bulk := make([]byte, 64<<10)
	if _, err := b.Export(1, make([]byte, len(bulk)), everyone.Peers, vmmc.ExportOptions{}); err != nil {
		t.Fatal(err)
	}
	i, err := a.Import(context1(t), 1, address)
	if err != nil {
		t.Fatal(err)
	}
	full := make([]byte, len(c.in.ring)) // nothing more goes to a before it has told that it read
	if _, err := s.Write(full); err != nil {
		t.Fatal(err)
	}
	g.shut.Lock()
	open := sync.OnceFunc(g.shut.Unlock)
	defer open()
	for refused := 0; refused < 20; { // then most likely the buffers of the kernel are full, too
		switch _, err := i.SendAsync(bulk, 0, vmmc.SendOptions{}); {
		case err == nil:
			refused = 0
		case errors.Is(err, vmmc.ErrTooManyOps):
			refused++
			time.Sleep(time.Millisecond)
		default:
			t.Fatal(err)
		}
	}
	if _, err := io.ReadFull(c, full); err != nil {
		t.Fatal(err)
	}
	c.SetWriteDeadline(time.Now().Add(10 * time.Millisecond))
	if err := c.CloseWrite(); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("CloseWrite while nothing can be sent: %v", err)
	}
	c.SetWriteDeadline(time.Time{})
	answered := make(chan error)
	go func() {
		_, err := io.ReadFull(c, full[:1])
		answered <- err
	}()
	open()
	if _, err := s.Write(full[:1]); err != nil {
		t.Fatal(err)
	}
	if err := testwait.Receive(t, "the next byte", answered); err != nil {
		t.Fatal(err)
	}
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(s); len(got) > 0 || err != nil {
		t.Errorf("read %q, %v", got, err)
	}
}

// A node that closes while its connections are used takes their memory away.
func TestNodeClosesItsConnections(t *testing.T) {
	for network := range networks {
		t.Run(network, func(t *testing.T) {
			c, s, a, _ := pipe(t, network, everyone)
			var all sync.WaitGroup
			for _, f := range []func([]byte) (int, error){c.Read, c.Write, s.Read, s.Write} {
				all.Go(func() {
					for b := make([]byte, 1000); ; {
						if _, err := f(b); err != nil {
							return
						}
					}
				})
			}
			time.Sleep(time.Millisecond) // any state is good
			if err := a.Close(); err != nil {
				t.Fatal(err)
			}
			all.Wait()
			if _, err := c.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
				t.Errorf("Read: %v", err)
			}
			if _, err := Dial(context1(t), a, "unix:/x", 1, everyone); err == nil {
				t.Error("a closed node dials")
			}
		})
	}
}

// Whoever dials hears what has ended, whatever Dial waits for at that moment.
func TestNodeClosesWhileItDials(t *testing.T) {
	testwait.Bound(t)
	b := openNode(t, "b", "shared")
	door, err := b.Export(service, make([]byte, slots*slotBytes), everyone.Peers, vmmc.ExportOptions{}) // nobody answers
	if err != nil {
		t.Fatal(err)
	}
	door.Block()
	for range 20 {
		a := openNode(t, "a", "shared")
		ended := make(chan error, 1)
		go func() { _, err := Dial(context1(t), a, b.Addresses()[0], service, everyone); ended <- err }()
		if _, err := door.Wait(context1(t)); err != nil {
			t.Fatal(err)
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
		if err := testwait.Receive(t, "the end of Dial", ended); !errors.Is(err, vmmc.ErrClosed) {
			t.Error(err)
		}
	}
}

func TestWhoIsNotPermittedGetsNoConnection(t *testing.T) {
	testwait.Bound(t)
	a, b := openNode(t, "a", "shared"), openNode(t, "b", "shared")
	ctx, cancel := context.WithCancel(context1(t))
	defer cancel()
	o := Options{Peers: vmmc.Permissions{Peers: []string{"c"}}, Warn: func(m string) {
		if !strings.Contains(m, `"c"`) {
			t.Errorf("warned %q", m)
		}
		cancel()
	}}
	listen(t, b, o)
	if _, err := Dial(context1(t), a, b.Addresses()[0], service, everyone); !errors.Is(err, vmmc.ErrNotPermitted) {
		t.Errorf("connected: %v", err)
	}
	c := openNode(t, "c", "shared")
	if _, err := Dial(ctx, c, b.Addresses()[0], service, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("the listener sends to one who did not permit it: %v", err)
	}
}

// Requests that are no requests, and those of many at the same time.
func TestManyConnectAtOnce(t *testing.T) {
	testwait.Bound(t)
	a, b := openNode(t, "a", "shared"), openNode(t, "b", "shared")
	l := listen(t, b, everyone)
	door, err := a.Import(context1(t), service, b.Addresses()[0])
	if err != nil {
		t.Fatal(err)
	}
	for k := range uint64(20) {
		_ = door.Send(context1(t), make([]byte, k*30), k*slotBytes/2, vmmc.SendOptions{Notify: true})
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { io.Copy(c, c); c.Close() }()
		}
	}()
	var all sync.WaitGroup
	for k := range 50 {
		all.Go(func() {
			c, err := Dial(context1(t), a, b.Addresses()[0], service, everyone)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			want := fmt.Sprint("caller ", k)
			if _, err := io.WriteString(c, want); err != nil {
				t.Error(err)
			}
			_ = c.CloseWrite()
			if got, err := io.ReadAll(c); string(got) != want || err != nil {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
	all.Wait()
}

// Those who dial wait for each other where only some may ask at a time.
func TestMoreConnectThanMayAskAtATime(t *testing.T) {
	testwait.Bound(t)
	a, b := openNode(t, "a", "shared"), openNode(t, "b", "shared")
	o := everyone
	o.Peers.MaxImporters = 1
	l := listen(t, b, o)
	door, err := a.Import(context1(t), service, b.Addresses()[0])
	if err != nil {
		t.Fatal(err)
	}
	refused, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	_, err = Dial(refused, a, b.Addresses()[0], service, everyone)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while another one asks: %v", err)
	}
	time.AfterFunc(10*time.Millisecond, door.Unimport)
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			c, err := Dial(context1(t), a, b.Addresses()[0], service, everyone)
			if err != nil {
				t.Error(err)
				return
			}
			c.Close()
		})
	}
	for range 3 {
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
	all.Wait()
}

func FuzzDecodeRequest(f *testing.F) {
	f.Add((&request{firstInbox, "unix:/x"}).encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := decodeRequest(b)
		if err == nil && !bytes.HasPrefix(b, r.encode()) {
			t.Errorf("%x was read as %+v", b, r)
		}
	})
}

// certificate is one for "b", and who issued it.
func certificate(t testing.TB) (tls.Certificate, *x509.CertPool) {
	_, key, _ := ed25519.GenerateKey(rand.Reader)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{"b"}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

// net/http and crypto/tls work without knowing what is below.
func TestHTTPAndTLSRunUnchanged(t *testing.T) {
	for network := range networks {
		t.Run(network, func(t *testing.T) {
			testwait.Bound(t)
			a, b := openNode(t, "a", network), openNode(t, "b", network)
			own, pool := certificate(t)
			page := bytes.Repeat([]byte("page "), 300_000)
			server := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err == nil {
					_, err = w.Write(append(body, page...))
				}
				if err != nil {
					t.Error(err)
				}
			})}
			served := make(chan error)
			l := listen(t, b, everyone)
			go func() {
				served <- server.Serve(tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{own}}))
			}()
			client := http.Client{Transport: &http.Transport{
				DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
					return Dial(ctx, a, b.Addresses()[0], service, everyone)
				},
				TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: "b"},
			}}
			var all sync.WaitGroup
			for k := range 8 {
				all.Go(func() {
					for range 3 {
						body := bytes.Repeat([]byte{byte(k)}, 100_000)
						answer, err := client.Post("https://b/", "text/plain", bytes.NewReader(body))
						if err != nil {
							t.Error(err)
							return
						}
						got, err := io.ReadAll(answer.Body)
						if err := errors.Join(err, answer.Body.Close()); err != nil || !bytes.Equal(got, append(body, page...)) {
							t.Errorf("%d bytes, %v", len(got), err)
						}
					}
				})
			}
			all.Wait()
			client.CloseIdleConnections()
			if err := server.Shutdown(context1(t)); err != nil {
				t.Error(err)
			}
			if err := testwait.Receive(t, "the end of the server", served); err != http.ErrServerClosed {
				t.Error(err)
			}
		})
	}
}
