package rpc

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"pinwheel/comm/vmmc/stream"
	"pinwheel/internal/fault"
)

// serving is a connection of a Server.
type serving struct {
	*Server
	conn *stream.Conn
	ctx  context.Context // ends with the connection

	// writing is held while a frame is written. It protects scratch.
	writing sync.Mutex
	scratch []byte

	// mu protects what follows. It is a leaf.
	mu       sync.Mutex
	running  map[uint64]context.CancelFunc
	pending  int // bytes of requests and replies
	handlers sync.WaitGroup
}

// serve executes what comes from a connection until that ends.
func (s *Server) serve(c *stream.Conn) {
	v := &serving{Server: s, conn: c, running: map[uint64]context.CancelFunc{}}
	var end context.CancelFunc
	v.ctx, end = context.WithCancel(s.ctx)
	stop := context.AfterFunc(s.ctx, func() { c.Close() })
	in := newFrames(c, s.opt.MaxBytes)
	var answer []byte
	for {
		h, body, err := in.next()
		if err == nil {
			answer, err = v.handle(h, body, answer)
		}
		if err != nil {
			break // the peer hears of it by the end of its connection
		}
	}
	end()
	stop()
	c.Close()
	v.handlers.Wait()
}

// handle takes a frame. answer is scratch for those that run inline.
func (v *serving) handle(h head, body, answer []byte) ([]byte, error) {
	switch h.kind {
	case cancel:
		v.mu.Lock()
		if f := v.running[h.call]; f != nil {
			f()
		}
		v.mu.Unlock()
		return answer, nil
	case request:
	default:
		return answer, fmt.Errorf("%w: kind %d", ErrProtocol, h.kind)
	}
	p, ok := v.procedure(h.code)
	switch {
	case !ok:
		return answer, v.answer(head{kind: failure, code: unknown, call: h.call}, nil)
	case p.mode == Inline:
		answer = grow(answer, 0)
		return answer, v.execute(v.ctx, p.handler, h.call, body, &answer)
	}
	ctx, end := v.call(&h)
	if ctx == nil {
		return answer, v.answer(head{kind: failure, code: tooMany, call: h.call}, nil)
	}
	mine := slices.Clone(body)
	go func() {
		defer v.handlers.Done()
		defer end()
		var answer []byte
		if v.execute(ctx, p.handler, h.call, mine, &answer) != nil {
			v.conn.Close() // a reply that can't be written: nobody hears of anything here any more
		}
	}()
	return answer, nil
}

// call makes the context of a call. It returns nil if there are too many, or too long ones, or one of that number.
func (v *serving) call(h *head) (ctx context.Context, end func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	bytes := int(h.bytes)
	if len(v.running) >= v.opt.MaxCalls || v.running[h.call] != nil || v.pending+bytes > v.opt.MaxPendingBytes {
		return nil, nil
	}
	v.pending += bytes
	var stop context.CancelFunc
	if h.left > 0 {
		ctx, stop = context.WithTimeout(v.ctx, h.left)
	} else {
		ctx, stop = context.WithCancel(v.ctx)
	}
	v.running[h.call] = stop
	v.handlers.Add(1)
	v.calls.Inc()
	return ctx, func() {
		stop()
		v.calls.Dec()
		v.mu.Lock()
		delete(v.running, h.call)
		v.pending -= bytes
		v.mu.Unlock()
	}
}

// hold counts a reply of n bytes until drop. It is false if there is no room. Short ones don't count: there are no more
// than MaxCalls.
func (v *serving) hold(n int) bool {
	if n <= joined {
		return true
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.pending+n > v.opt.MaxPendingBytes {
		return false
	}
	v.pending += n
	return true
}

func (v *serving) drop(n int) {
	if n <= joined {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.pending -= n
}

// execute calls a handler and writes its reply. It fails if that can't be written.
func (v *serving) execute(ctx context.Context, f Handler, id uint64, body []byte, scratch *[]byte) error {
	var answer []byte
	err := fault.Contain(func() (err error) {
		answer, err = f(ctx, body, *scratch)
		return err
	})
	switch {
	case err != nil:
	case len(answer) > v.opt.MaxBytes:
		err = fmt.Errorf("rpc: reply of %d bytes, where %d are allowed", len(answer), v.opt.MaxBytes)
	case !v.hold(len(answer)):
		err = fmt.Errorf("rpc: no room for a reply of %d bytes, as others wait until the client reads", len(answer))
	}
	if err != nil {
		text := err.Error()
		return v.answer(head{kind: failure, code: failed, call: id}, []byte(text[:min(len(text), maxText)]))
	}
	defer v.drop(len(answer))
	*scratch = answer
	return v.answer(head{kind: reply, call: id}, answer)
}

// maxText is the longest text of an error, in bytes.
const maxText = 4 << 10 // 4 KiB

func (v *serving) answer(h head, body []byte) error {
	v.writing.Lock()
	defer v.writing.Unlock()
	return write(v.conn, &v.scratch, h, body)
}
