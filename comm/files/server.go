package files

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"go.uber.org/atomic"

	"pinwheel/comm/files/internal/newfile"
	"pinwheel/comm/files/pipe"
	"pinwheel/comm/vmmc"
	"pinwheel/comm/vmmc/stream"
)

// DefaultService is the number of the service at which a server is found, unless it is told another one.
const DefaultService = 2049

// Access is what a client wants to do with a name.
type Access uint8

// The kinds of access.
const (
	Read  Access = iota // to open, describe or list it
	Write               // to upload to it, or to make it a directory
)

// ServerOptions configure a Server. Peers must be set.
type ServerOptions struct {
	// Service is the number by which clients find this server. 0 stands for DefaultService.
	Service uint32
	// Peers say who may connect.
	Peers vmmc.Permissions
	// AllowWrite lets clients upload files and make directories.
	AllowWrite bool
	// Authorize, if not nil, refuses an access by an error, which the client gets as EACCES. peer is the client, by the
	// name that vmmc knows it by. It may be called from many goroutines at once.
	Authorize func(peer string, a Access, name string) error

	// Strategy has the numbers of transfers. The zero value stands for pipe.Auto.
	Strategy pipe.Strategy
	// BudgetBytes bounds what is registered of files that all clients together read. 0 stands for DefaultBudget, or for
	// half of what this process may pin, if that is less. What clients send, requests and uploads, goes into exports of
	// the node, 512 KiB and 4 MiB for each: vmmc.Options.MaxPinned bounds how much of these is registered.
	BudgetBytes int64
	// MaxMappings is how many files stay mapped after they were served by RDMA. 0 stands for 256.
	MaxMappings int

	// MaxClients is how many clients may be connected. More get EUSERS. 0 stands for 256.
	MaxClients int
	// MaxOpen is how many files, directories, windows, uploads and data connections a client may have open. More get
	// EMFILE. 0 stands for 256.
	MaxOpen int
	// IdleTimeout ends the connection of a client that has neither files nor uploads open and asks for nothing for so
	// long, or that takes no answer for so long. 0 stands for 10 minutes.
	IdleTimeout time.Duration

	// TrustedNetwork lets clients that want it have file bytes over TCP without encryption, by sendfile(2).
	TrustedNetwork bool
	// RequireRDMA has contents of files go by RDMA in both directions, or not at all: what can't fails with ErrNoRDMA
	// after some seconds. Files of SmallBytes and less are excepted, which come inside of requests and answers.
	RequireRDMA bool
	// DataListen is where such connections are accepted: HOST:PORT. Empty: a port that the kernel chooses, at the host of
	// the first TCP address of the node.
	DataListen string

	// Warn gets a line whenever something fails that no client hears of. nil: standard error.
	Warn func(message string)
}

// EnsureDefaults fills in what is zero. It fails if the options make no sense.
func (o *ServerOptions) EnsureDefaults() error {
	o.Service = cmp.Or(o.Service, DefaultService)
	o.MaxClients = cmp.Or(o.MaxClients, 256)
	o.MaxOpen = cmp.Or(o.MaxOpen, 256)
	o.IdleTimeout = cmp.Or(o.IdleTimeout, 10*time.Minute)
	if o.Warn == nil {
		o.Warn = warnStderr
	}
	if o.RequireRDMA && o.TrustedNetwork {
		return errInsistsOnTCP
	}
	if o.MaxClients < 0 || o.MaxOpen < 0 || o.IdleTimeout < 0 {
		return fmt.Errorf("files: %d clients, %d open files, an idle timeout of %v", o.MaxClients, o.MaxOpen, o.IdleTimeout)
	}
	return nil
}

// Server serves the files below a directory. All methods are safe for concurrent use.
type Server struct {
	opt       ServerOptions
	node      *vmmc.Node
	root      *os.Root
	registrar *Registrar
	listener  *stream.Listener
	data      *dataListener // nil: no TCP without encryption
	local     *dataListener // nil: nobody on this machine has descriptors
	counters  counters
	durable   newfile.Group // of uploads
	sweeper   *sweeper
	announced *announcement
	ctx       context.Context // ends with Close
	cancel    context.CancelFunc

	// mu protects what follows. It is a leaf.
	mu       sync.Mutex
	closed   bool
	sessions map[*session]bool
	refused  int // clients that hear that there are too many
	ever     int64
	tasks    sync.WaitGroup // serve clients; none begins after Close

	hook   nodeHook
	ending sync.Once
	ended  error
}

// counters are those of Stats that no part has for itself.
type counters struct {
	requests, errors, changed                    atomic.Int64
	received, rdma, shared, tls, sendfile, small atomic.Int64
	copied                                       atomic.Int64
}

// maxRefused is how many clients at a time hear that there are too many; others just lose their connection.
const maxRefused = 32

// NewServer serves root through a node that listens, from the first call of Serve on. The node and the root stay those
// of the caller, who closes them after the server.
func NewServer(n *vmmc.Node, root *os.Root, o ServerOptions) (*Server, error) {
	if err := o.EnsureDefaults(); err != nil {
		return nil, err
	}
	s := &Server{opt: o, node: n, root: root, sweeper: newSweeper(), sessions: map[*session]bool{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	var err error
	s.registrar, err = newRegistrar(n, RegistrarOptions{
		Strategy: o.Strategy, BudgetBytes: o.BudgetBytes, MaxMappings: o.MaxMappings, Warn: o.Warn,
	}, slices.ContainsFunc(n.Addresses(), alsoElsewhere))
	if err == nil && o.RequireRDMA && s.registrar.provider == nil {
		err = errNoDevice
	}
	if err == nil && o.TrustedNetwork {
		s.data, err = listenSendfile(n.Addresses(), o.DataListen)
	}
	if err == nil {
		s.local = listenLocal(n.Addresses(), o.Warn)
	}
	if err == nil {
		s.listener, err = stream.Listen(n, o.Service, streamOptions(o.Peers, "", o.Warn))
	}
	if err == nil {
		s.announced, err = announce(s)
	}
	if err == nil {
		err = s.hook.set(n, func() { _ = s.Close() }) // what it fails with ends with the node
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// streamOptions are those of the connection of a client, at both ends.
func streamOptions(peers vmmc.Permissions, address string, warn func(string)) stream.Options {
	return stream.Options{Peers: peers, Address: address, Ring: 512 << 10, Warn: warn} // 512 KiB
}

// Serve serves clients until ctx ends or the server is closed, which is no error. Transfers that are under way end with
// it.
func (s *Server) Serve(ctx context.Context) error {
	stop := context.AfterFunc(ctx, s.cancel)
	defer stop()
	unblock := context.AfterFunc(s.ctx, func() { _ = s.listener.Close() }) // it fails if it was closed before
	defer unblock()
	for {
		c, err := s.listener.Accept()
		if err == nil {
			s.accept(c.(*stream.Conn))
			continue
		}
		closeErr := s.Close()
		if s.ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
			return closeErr
		}
		return errors.Join(err, closeErr)
	}
}

// accept serves a client.
func (s *Server) accept(c *stream.Conn) {
	v := newSession(s, c)
	s.mu.Lock()
	full := len(s.sessions)-s.refused >= s.opt.MaxClients
	if s.closed || full && s.refused >= maxRefused {
		s.mu.Unlock()
		c.Close()
		return
	}
	s.sessions[v] = true
	if v.full = full; full {
		s.refused++
	} else {
		s.ever++
	}
	s.tasks.Go(func() {
		v.serve()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.sessions, v)
		if full {
			s.refused--
		}
	})
	s.mu.Unlock()
}

// Close ends all connections, gives back what is registered and removes temporary files. A second Close does nothing.
func (s *Server) Close() error {
	s.cancel()
	s.ending.Do(func() {
		s.hook.forget()
		s.mu.Lock()
		s.closed = true
		s.mu.Unlock()
		var errs []error
		if s.announced != nil {
			s.announced.close()
		}
		if s.listener != nil {
			if err := s.listener.Close(); !errors.Is(err, net.ErrClosed) {
				errs = append(errs, err)
			}
		}
		for _, d := range []*dataListener{s.data, s.local} {
			if d != nil {
				errs = append(errs, d.Close())
			}
		}
		s.tasks.Wait() // their contexts have ended
		s.sweeper.close()
		if s.registrar != nil {
			errs = append(errs, s.registrar.Close())
		}
		s.ended = errors.Join(errs...)
	})
	return s.ended
}

// Stats returns the counts so far.
func (s *Server) Stats() Stats {
	c := &s.counters
	st := Stats{
		Requests: c.requests.Load(), Errors: c.errors.Load(), Changed: c.changed.Load(),
		BytesReceived: c.received.Load(), BytesRDMA: c.rdma.Load(), BytesShared: c.shared.Load(), BytesTLS: c.tls.Load(),
		BytesSendfile: c.sendfile.Load(), BytesInline: c.small.Load(), BytesCopied: c.copied.Load(),
		RegistrarStats: s.registrar.Stats(),
	}
	st.BytesSent = st.BytesRDMA + st.BytesShared + st.BytesTLS + st.BytesSendfile + st.BytesInline
	s.mu.Lock()
	defer s.mu.Unlock()
	st.Clients, st.ClientsEver = len(s.sessions)-s.refused, s.ever
	for v := range s.sessions {
		st.OpenFiles += v.handles.count()
	}
	return st
}

// warn says what no client hears of.
func (s *Server) warn(format string, args ...any) { s.opt.Warn(fmt.Sprintf(format, args...)) }
