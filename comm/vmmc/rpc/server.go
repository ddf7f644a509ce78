package rpc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"go.uber.org/atomic"

	"pinwheel/comm/vmmc/stream"
)

// Handler executes a procedure. It appends its answer to reply and returns that. request and reply are its own until
// it returns. ctx ends with the call, or with its connection.
type Handler func(ctx context.Context, request, reply []byte) ([]byte, error)

// Mode says in which goroutine a handler runs.
type Mode int

const (
	// Waits is the mode of a handler that may take its time: each call gets a goroutine.
	Waits Mode = iota
	// Inline is the mode of a handler that waits for nothing and takes microseconds: it runs in the goroutine that
	// reads the requests of a connection, one call after the other. Its context has no deadline and ends only with
	// the connection.
	Inline
)

type procedure struct {
	handler Handler
	mode    Mode
}

// Server executes procedures. All methods are safe for concurrent use.
type Server struct {
	opt   Options
	ctx   context.Context // ends with Close
	close context.CancelFunc
	calls atomic.Int64 // that have goroutines

	// mu protects what follows. It is a leaf.
	mu         sync.Mutex
	procedures map[uint32]procedure
	open       map[net.Listener]bool
	tasks      sync.WaitGroup // serve connections; none begins after Close
}

// NewServer returns a server without procedures.
func NewServer(o Options) *Server {
	o.ensureDefaults()
	s := &Server{opt: o, procedures: map[uint32]procedure{}, open: map[net.Listener]bool{}}
	s.ctx, s.close = context.WithCancel(context.Background())
	return s
}

// Handle makes h the handler of a procedure, also for connections that exist. nil removes it.
func (s *Server) Handle(number uint32, h Handler, m Mode) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if delete(s.procedures, number); h != nil {
		s.procedures[number] = procedure{h, m}
	}
}

func (s *Server) procedure(number uint32) (procedure, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok := s.procedures[number]
	return p, ok
}

// Serve serves the connections of a listener until that is closed, and closes it if the server is. Then it
// returns ErrClosed.
func (s *Server) Serve(l *stream.Listener) error {
	s.mu.Lock()
	if s.ctx.Err() != nil {
		s.mu.Unlock()
		return ErrClosed
	}
	s.open[l] = true
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.open, l)
		s.mu.Unlock()
	}()
	for {
		c, err := l.Accept()
		if err != nil {
			if s.ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return ErrClosed
			}
			return fmt.Errorf("rpc: %w", err)
		}
		if !s.begin(c.(*stream.Conn)) {
			c.Close()
		}
	}
}

// ServeConn serves one connection, which it takes over, until that ends. It is for servers whose procedures differ from
// client to client. It fails with ErrClosed if the server was closed before.
func (s *Server) ServeConn(c *stream.Conn) error {
	ended := make(chan struct{})
	if !s.start(func() { defer close(ended); s.serve(c) }) {
		c.Close()
		return ErrClosed
	}
	<-ended
	return nil
}

// begin serves a connection, unless the server was closed.
func (s *Server) begin(c *stream.Conn) bool { return s.start(func() { s.serve(c) }) }

// Calls returns how many calls of handlers that are Waits are under way: until their replies are written, which takes as
// long as their clients like.
func (s *Server) Calls() int { return int(s.calls.Load()) }

// start starts a task, unless the server was closed.
func (s *Server) start(task func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return false
	}
	s.tasks.Go(task)
	return true
}

// Close ends listeners and connections, and waits for handlers: their contexts have ended. A handler must
// not call it.
func (s *Server) Close() error {
	s.mu.Lock()
	s.close()
	var all []net.Listener
	for l := range s.open {
		all = append(all, l)
	}
	s.mu.Unlock()
	var errs []error
	for _, l := range all {
		if err := l.Close(); !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	s.tasks.Wait()
	return errors.Join(errs...)
}
