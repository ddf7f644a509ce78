package stream

import (
	"bytes"
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"pinwheel/comm/vmmc"
	"pinwheel/internal/testwait"
)

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
