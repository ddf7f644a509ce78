package profile

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// Node says who ends together.
type Node struct {
	Job   string // names the run on this node, as settings.Job does
	Ranks int    // of the run on this node, at most
}

// Participant is a rank that will hand in what it learns. The others wait for it, and not for ranks that have nothing to
// hand in. For one goroutine at a time.
type Participant struct {
	node Node
	key  Key
	seat int // a datagram socket whose name the others count; -1: there is none
}

// Join makes this process a participant until Leave, or until it ends: the kernel takes the name of its socket back.
// Processes take any free name of as many as there are ranks.
func (n Node) Join(k Key) *Participant {
	p := &Participant{node: n, key: k, seat: -1}
	if n.Ranks <= 1 {
		return p
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return p
	}
	for i := range n.Ranks {
		if unix.Bind(fd, p.seatName(os.Getpid()+i)) == nil { // those of neighbours begin at different names
			p.seat = fd
			return p
		}
	}
	unix.Close(fd)
	return p
}

// Leave tells the others not to wait for this process. It may be called more than once, and for nil.
func (p *Participant) Leave() {
	if p != nil && p.seat >= 0 {
		unix.Close(p.seat)
		p.seat = -1
	}
}

// present is how many participants there are, this one included; as many as there are ranks if that can't be known.
// Names of abstract sockets belong to nobody, so it may be more than there are. Each name takes a microsecond.
func (p *Participant) present() (count int) {
	if p.seat < 0 {
		return p.node.Ranks
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return p.node.Ranks
	}
	defer unix.Close(fd)
	for i := range p.node.Ranks {
		if unix.Connect(fd, p.seatName(i)) == nil { // it fails if nobody has the name
			count++
		}
	}
	return count
}

func (p *Participant) seatName(i int) unix.Sockaddr {
	return p.node.name(p.key, fmt.Sprintf("/%d", i%p.node.Ranks))
}

// First reports whether this process is the first of the node that asks so about a job: then it tells the user, for all.
// It stays the first until it ends. Safe for concurrent use.
func (n Node) First(k Key, what string) bool {
	if n.Ranks <= 1 {
		return true
	}
	firstMu.Lock()
	defer firstMu.Unlock()
	name := n.name(k, "/"+what)
	if isFirst[name.Name] {
		return true
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return true // rather twice than not at all
	}
	if err := unix.Bind(fd, name); errors.Is(err, unix.EADDRINUSE) {
		unix.Close(fd)
		return false
	}
	isFirst[name.Name] = true // the socket stays open: it has the name
	return true
}

var (
	firstMu sync.Mutex // protects isFirst
	isFirst = map[string]bool{}
)

// name is that of an abstract socket (unix(7)), the same for the ranks that write one file.
func (n Node) name(k Key, suffix string) *unix.SockaddrUnix {
	dir := k.directory()
	return &unix.SockaddrUnix{Name: fmt.Sprintf("@pinwheel-profile/%d/%s/%s%s", os.Geteuid(), n.Job, dir[len(dir)-16:], suffix)}
}
