package identity

import (
	"net"
	"testing"
)

// from is a connection from somewhere.
type from struct {
	net.Conn
	at     net.TCPAddr
	closed bool
}

func (f *from) RemoteAddr() net.Addr { return &f.at }
func (f *from) Close() error         { f.closed = true; return nil }

func TestStrangersDriveOutEachOther(t *testing.T) {
	const most = 64
	for _, flood := range []string{"192.0.2.1", "2001:db8::1"} {
		var s Strangers
		oldest := &from{at: net.TCPAddr{IP: net.ParseIP("198.51.100.7"), Port: 1}}
		s.Enter(oldest, most)
		var crowd []*from
		for k := range 100 * most {
			ip := net.ParseIP(flood)
			if ip.To4() == nil {
				ip[15] = byte(k) // of one network
			}
			c := &from{at: net.TCPAddr{IP: ip, Port: k + 1}}
			crowd = append(crowd, c)
			s.Enter(c, most)
		}
		open, young := 0, 0
		for k, c := range crowd {
			if !c.closed {
				open++
			} else if k >= len(crowd)-most/2 {
				young++
			}
		}
		// By chance, so that to come late does not help: some of the last are closed.
		if oldest.closed || open != most-1 || s.Len() != most || young == 0 {
			t.Errorf("%s: the one who is alone was closed: %v; %d others are open, %d of the last were closed",
				flood, oldest.closed, open, young)
		}
		s.Leave(oldest)
		s.Leave(oldest)
		if s.Len() != most-1 {
			t.Errorf("%s: %d after one has left", flood, s.Len())
		}
	}
}
