package stream

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/nettest"

	"pinwheel/comm/vmmc"
	"pinwheel/internal/testwait"
)

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

func TestWriterWaitsForARingOfRoom(t *testing.T) {
	for network := range networks {
		t.Run(network, func(t *testing.T) {
			o := everyone
			o.Ring = 10_000
			c, s, _, _ := pipe(t, network, o)
			type result struct {
				n   int
				err error
			}
			written := make(chan result, 1)
			go func() {
				n, err := c.Write(make([]byte, 1<<20))
				written <- result{n, err}
			}()
			testwait.Until(t, "the ring is full", func() bool { return s.in.tail.Load() == uint64(o.Ring) },
				func() any { return s.in.tail.Load() })
			if err := c.SetWriteDeadline(time.Now()); err != nil {
				t.Fatal(err)
			}
			w := testwait.Receive(t, "the end of Write", written)
			if w.n != o.Ring || !errors.Is(w.err, os.ErrDeadlineExceeded) {
				t.Fatalf("%d bytes were written to one who does not read, %v", w.n, w.err)
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
