package testwait

import (
	"net/netip"
	"os"
	"sync/atomic"
)

var loopbacks atomic.Uint32

// Loopback is an address of the loopback network (127.0.0.0/8, RFC 1122) that no other test listens at: a server that is
// gone leaves its port free, and at 127.0.0.1 that of another test, or a client, may have it a moment later.
func Loopback() string {
	const ours = 10 // bits that count what this process has; the other 13 are of its number
	n := uint32(os.Getpid())<<ours | loopbacks.Add(1)%(1<<ours)
	return netip.AddrFrom4([4]byte{127, 128 | byte(n>>16), byte(n >> 8), byte(n)}).String()
}
