package files

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"go.uber.org/atomic"

	"pinwheel/internal/machine"
	"pinwheel/internal/unixsocket"
)

// ServerInfo is what a server tells other processes of its user about itself.
type ServerInfo struct {
	PID       int      `json:"pid"`
	Server    int      `json:"server"` // tells the servers of a process apart; from 1
	Dir       string   `json:"dir"`
	Addresses []string `json:"addresses"`
	// Error says why the server did not tell what follows. Its process may be stopped.
	Error string `json:"error,omitempty"`
	Stats
}

// announcePrefix begins the abstract names of sockets at which the servers of this user tell about themselves. Such a
// socket goes with its process: nothing is left.
func announcePrefix() string { return fmt.Sprintf("pinwheel-files/%d/", os.Geteuid()) }

// announcement is such a socket.
type announcement struct {
	*net.UnixListener
	number int
	task   sync.WaitGroup
}

var announcements atomic.Int64

const (
	// tellTime bounds how long one may take to ask, or to tell.
	tellTime    = time.Second
	maxTellings = 1 << 20 // 1 MiB
)

// announce tells about a server until it is closed.
func announce(s *Server) (*announcement, error) {
	a := &announcement{number: int(announcements.Inc())}
	name := fmt.Sprintf("@%s%d/%d", announcePrefix(), os.Getpid(), a.number)
	var err error
	if a.UnixListener, err = net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: name}); err != nil {
		return nil, err
	}
	a.task.Go(func() {
		for {
			c, err := a.AcceptUnix()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil {
				time.Sleep(100 * time.Millisecond) // most likely no descriptor is left
				continue
			}
			a.tell(c, s)
		}
	})
	return a, nil
}

// tell tells one process, if it is of this user, or root's.
func (a *announcement) tell(c *net.UnixConn, s *Server) {
	defer c.Close()
	who, err := unixsocket.Peer(c)
	if err != nil || who.Uid != 0 && int(who.Uid) != os.Geteuid() {
		return
	}
	_ = c.SetDeadline(time.Now().Add(tellTime)) // if it fails, so does what follows
	_ = json.NewEncoder(c).Encode(ServerInfo{   // whoever asks hears that there is no answer
		PID: os.Getpid(), Server: a.number, Dir: s.root.Name(), Addresses: s.node.Addresses(), Stats: s.Stats(),
	})
}

func (a *announcement) close() {
	_ = a.Close() // it fails if it was closed before
	a.task.Wait()
}

// Servers returns what the servers of this user tell that run in this network namespace, sorted by process. Those that
// don't answer within a second say so.
func Servers(ctx context.Context) ([]ServerInfo, error) {
	names, err := machine.AbstractSockets(announcePrefix())
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	names = slices.Compact(names)
	all := make([]ServerInfo, len(names))
	var asked sync.WaitGroup
	for i, name := range names {
		asked.Go(func() { all[i] = ask(ctx, name) })
	}
	asked.Wait()
	return slices.DeleteFunc(all, func(s ServerInfo) bool { return s.PID == 0 }), nil
}

// ask asks one server. One that has gone, or is another user's, is the zero value.
func ask(ctx context.Context, name string) (s ServerInfo) {
	ctx, cancel := context.WithTimeout(ctx, tellTime)
	defer cancel()
	d := net.Dialer{}
	conn, err := d.DialContext(ctx, "unix", "@"+announcePrefix()+name)
	if err != nil {
		return s
	}
	defer conn.Close()
	c := conn.(*net.UnixConn)
	who, err := ownPeer(c)
	if err != nil {
		return s
	}
	end, _ := ctx.Deadline()
	if err = c.SetDeadline(end); err == nil {
		err = json.NewDecoder(io.LimitReader(c, maxTellings)).Decode(&s)
	}
	if errors.Is(err, io.EOF) { // it has ended meanwhile
		return ServerInfo{}
	}
	if err != nil {
		s = ServerInfo{Error: "it does not answer"}
	}
	s.PID = int(who.Pid) // as this process knows it
	return s
}
