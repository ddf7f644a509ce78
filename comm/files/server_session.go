package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.uber.org/atomic"

	"pinwheel/comm/files/internal/wire"
	"pinwheel/comm/vmmc/rpc"
	"pinwheel/comm/vmmc/stream"
)

// session serves one client.
type session struct {
	*Server
	conn    *stream.Conn
	peer    string
	address string // at which the client's node is found
	calls   *rpc.Server
	handles handles
	full    bool // all that the client hears is that there are too many
	greeted atomic.Bool
	trusted atomic.Bool // the client is fine with bytes that are not encrypted
	insists atomic.Bool // contents go by RDMA, or not at all

	sending sync.WaitGroup // contents of small files, by data connections

	began   time.Time
	last    atomic.Duration // when a request began, got on or ended, since began
	serving atomic.Int64    // requests that have no answer yet
	sums    chan struct{}   // has an entry for each checksum that is computed

	staging struct {
		sync.Mutex
		of *staging
	}
}

const (
	// maxCalls is how many requests of a client may be under way; a client of this package stays below.
	maxCalls   = 128
	clientLeft = 16 // of these, those that were cancelled and have not ended
	// maxSums is how many checksums are computed for a client at a time, each with a buffer as large as zeroBytes.
	maxSums = 4
	// greetTime is how long a client may take to say hello, or to hear that there are too many.
	greetTime = 5 * time.Second
)

func rpcOptions() rpc.Options { return rpc.Options{MaxBytes: wire.MaxMessage, MaxCalls: maxCalls} }

func newSession(s *Server, c *stream.Conn) *session {
	v := &session{
		Server: s, conn: c, peer: c.Peer(), address: c.RemoteAddr().(stream.Addr).Node, calls: rpc.NewServer(rpcOptions()),
		handles: handles{most: s.opt.MaxOpen, of: map[uint64]opened{}}, began: time.Now(), sums: make(chan struct{}, maxSums),
	}
	on(v, wire.ProcHello, v.hello)
	on(v, wire.ProcStat, v.stat)
	on(v, wire.ProcOpen, v.open)
	on(v, wire.ProcClose, v.closeHandle)
	on(v, wire.ProcList, v.list)
	on(v, wire.ProcWindow, v.window)
	on(v, wire.ProcRead, v.read)
	on(v, wire.ProcReadMany, v.readMany)
	on(v, wire.ProcTicket, v.ticket)
	on(v, wire.ProcStream, v.stream)
	on(v, wire.ProcDescriptor, v.descriptor)
	on(v, wire.ProcTaken, v.taken)
	on(v, wire.ProcSum, v.sum)
	on(v, wire.ProcExtents, v.extents)
	on(v, wire.ProcMkdir, v.mkdir)
	on(v, wire.ProcSetAttr, v.setAttr)
	on(v, wire.ProcPut, v.put)
	on(v, wire.ProcCreate, v.create)
	on(v, wire.ProcStaging, v.stage)
	on(v, wire.ProcWrite, v.write)
	on(v, wire.ProcCommit, v.commit)
	on(v, wire.ProcAbort, v.abort)
	on(v, wire.ProcGrowth, v.growth)
	return v
}

// atRequest is replaced by tests, in which an end is killed before a request is served, or before it is answered.
var atRequest = func(procedure uint32, served bool) {}

// on has f serve a procedure. What it fails with is the status of the answer; a request that is malformed has none.
func on[Q any, P interface {
	*Q
	wire.Message
}](v *session, procedure uint32, f func(context.Context, P) (wire.Message, error)) {
	v.calls.Handle(procedure, func(ctx context.Context, request, reply []byte) ([]byte, error) {
		v.serving.Inc()
		defer v.serving.Dec()
		v.progress()
		defer v.progress()
		v.counters.requests.Inc()
		q := P(new(Q))
		if err := wire.Decode(request, q); err != nil {
			return nil, err
		}
		var a wire.Message
		err := error(syscall.EPROTO)
		if procedure == wire.ProcHello || v.greeted.Load() {
			atRequest(procedure, false)
			a, err = f(ctx, q)
			atRequest(procedure, true)
		}
		if d, ok := a.(interface{ done() }); ok {
			defer d.done()
		}
		if err != nil {
			v.counters.errors.Inc()
			if errors.Is(err, ErrChanged) {
				v.counters.changed.Inc()
			}
			return wire.Append(reply, statusOf(err)), nil
		}
		return wire.Append(wire.Append(reply, &wire.Status{}), a), nil
	}, rpc.Waits)
}

// serve serves the client until its connection ends, and gives back what it had.
func (v *session) serve() {
	stop := context.AfterFunc(v.ctx, func() { v.conn.Close() })
	watched := make(chan struct{})
	ended := make(chan struct{})
	go func() { defer close(watched); v.watch(ended, func() { v.conn.Close() }) }()
	_ = v.calls.ServeConn(v.conn) // it fails for a server that is closed, which this one is not
	close(ended)
	<-watched
	stop()
	v.handles.close()
	v.sending.Wait() // their connections are closed
	v.endStaging()
	_ = v.calls.Close() // it has no listener
}

func (v *session) hello(_ context.Context, q *wire.Hello) (wire.Message, error) {
	switch {
	case v.full:
		return nil, fmt.Errorf("%w: there are %d clients", syscall.EUSERS, v.opt.MaxClients)
	case q.Version != wire.Version:
		return nil, fmt.Errorf("%w: %d", ErrVersion, q.Version)
	case q.RDMA && v.registrar.provider == nil:
		return nil, errNoDevice
	}
	v.insists.Store(q.RDMA || v.opt.RequireRDMA)
	w := &wire.Welcome{
		Version: wire.Version, Calls: maxCalls - clientLeft, Writable: v.opt.AllowWrite, RDMA: v.opt.RequireRDMA,
	}
	if v.data != nil && q.Trusted && !v.insists.Load() {
		v.trusted.Store(true)
		w.DataPort = v.data.port()
	}
	if v.local != nil {
		w.Socket = v.local.Addr().String()
	}
	v.greeted.Store(true)
	return w, nil
}

func (v *session) closeHandle(_ context.Context, q *wire.Handle) (wire.Message, error) {
	o, err := v.handles.take(q.Handle)
	if err != nil {
		return nil, err
	}
	o.close()
	return &wire.Empty{}, nil
}

// allowed checks a name, and whether the client may do something with it.
func (v *session) allowed(a Access, name string) error {
	err := checkName(name)
	switch {
	case err != nil:
		return err
	case a == Write && !v.opt.AllowWrite:
		return syscall.EROFS
	case v.opt.Authorize == nil:
		return nil
	}
	if err := v.opt.Authorize(v.peer, a, name); err != nil {
		return fmt.Errorf("%w: %w", syscall.EACCES, err)
	}
	return nil
}

// checkName refuses what no file of a client is called. Unlike package io/fs it takes any bytes: old file systems have
// names that are not UTF-8.
func checkName(name string) error {
	if len(name) > wire.MaxName {
		return syscall.ENAMETOOLONG
	}
	if name == "." {
		return nil
	}
	for e := range strings.SplitSeq(name, "/") {
		switch {
		case e == "" || e == "." || e == ".." || strings.IndexByte(e, 0) >= 0:
			return syscall.EINVAL
		case len(e) > wire.MaxElement:
			return syscall.ENAMETOOLONG
		case isHidden(e):
			return syscall.ENOENT
		}
	}
	return nil
}

// rootError is the error of an os.Root. One without an errno says that the name leads out of it.
func rootError(err error) error {
	var errno syscall.Errno
	if err == nil || errors.As(err, &errno) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist) {
		return err
	}
	return errOutside
}
