package identity

import (
	"math/rand/v2"
	"net"
	"slices"
	"sync"
)

// Strangers are connections whose peers have not proved yet who they are. The zero value has none. All methods are
// safe for concurrent use.
type Strangers struct {
	mu    sync.Mutex
	conns []net.Conn
}

// Enter adds a connection. If there are more than most then, it closes one of them.
func (s *Strangers) Enter(c net.Conn, most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conns = append(s.conns, c); len(s.conns) > most {
		k := victim(s.conns)
		s.conns[k].Close()
		s.conns = slices.Delete(s.conns, k, k+1)
	}
}

// Leave removes a connection if it is there.
func (s *Strangers) Leave(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns = slices.DeleteFunc(s.conns, func(o net.Conn) bool { return o == c })
}

// Len is how many there are.
func (s *Strangers) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// victim chooses a connection: by chance, of the network that has most of them. Strangers who prove nothing so drive
// out each other, and not whoever needs a moment longer.
func victim(conns []net.Conn) int {
	of := map[string][]int{}
	most := 0
	for k, c := range conns {
		s := networkOf(c.RemoteAddr())
		of[s] = append(of[s], k)
		most = max(most, len(of[s]))
	}
	var candidates []int
	for _, of := range of {
		if len(of) == most {
			candidates = append(candidates, of...)
		}
	}
	return candidates[rand.N(len(candidates))]
}

// networkOf says where a peer is: its address, or the first 64 bits of it with IPv6, as one machine can have
// all the others.
func networkOf(a net.Addr) string {
	t, ok := a.(*net.TCPAddr)
	if !ok {
		return ""
	}
	if t.IP.To4() == nil {
		return string(t.IP.Mask(net.CIDRMask(64, 128)))
	}
	return string(t.IP.To4())
}
