package broker

import (
	"context"
	"errors"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// exporter is a registered process.
type exporter struct {
	*conn
	key
	user  *user
	pid   int
	users []uint32
	nodes []string
	gone  chan struct{} // closed when it reads nothing any more

	turn chan struct{} // held by who asks; capacity 1

	// mu protects what follows.
	mu       sync.Mutex
	asked    uint64 // the number of the last question
	question uint64 // that it may answer; 0: none. Answers to others came too late, or nobody asked for them
	partial  description
	answer   chan description // capacity 1: no more than one answer to a question
}

// description is what a process tells about itself.
type description struct {
	Stats
	bytes int64 // of its messages: they count for the user until forget
	err   error
}

// maxTold is how many bytes of descriptions the lists may hold that are being made of the processes of one user. They
// take a few times as much memory.
const maxTold = 16 << 20 // 16 MiB

var errTold = errors.New("it tells too much")

func newExporter(c *conn, k key, u *user, pid int, m *message) *exporter {
	return &exporter{
		conn: c, key: k, user: u, pid: pid, users: m.Users, nodes: m.Nodes, gone: make(chan struct{}),
		turn: make(chan struct{}, 1), answer: make(chan description, 1),
	}
}

// admits tells whether the process lets somebody in.
func (e *exporter) admits(o Origin) bool {
	user := o.UID == e.uid || slices.Contains(e.users, o.UID)
	return user && (o.Node == "" || slices.Contains(e.nodes, o.Node) || slices.Contains(e.nodes, "*"))
}

// read takes answers until the process has gone.
func (e *exporter) read() {
	defer close(e.gone)
	for {
		m, fd, err := e.receive()
		if fd >= 0 {
			unix.Close(fd)
		}
		if err == nil {
			err = e.heard(&m)
		}
		if err != nil {
			return
		}
	}
}

func (e *exporter) heard(m *message) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.question == 0 || m.Question != e.question {
		return nil
	}
	last, err := e.partial.add(m)
	switch {
	case err != nil:
		return err
	case e.user.told.Add(int64(m.length)) > maxTold:
		e.user.told.Sub(int64(m.length))
		e.forget(&e.partial)
		e.partial.err, last = errTold, true
	default:
		e.partial.bytes += int64(m.length)
	}
	if last {
		e.answer <- e.partial
		e.question, e.partial = 0, description{}
	}
	return nil
}

// forget drops a description.
func (e *exporter) forget(d *description) {
	e.user.told.Sub(d.bytes)
	*d = description{}
}

// describe asks the process what it exports and imports. If it does not fail, then the caller has to forget what it
// returns.
func (e *exporter) describe(ctx context.Context) (d description, err error) {
	select {
	case e.turn <- struct{}{}:
		defer func() { <-e.turn }()
	case <-ctx.Done():
		return d, ctx.Err()
	}
	e.mu.Lock()
	e.asked++
	e.question = e.asked
	e.mu.Unlock()
	err = e.send(ctx, &message{Kind: describe, Question: e.asked}) // whoever has the turn is alone in changing asked
	if err == nil {
		select {
		case d = <-e.answer:
			return d, d.err
		case <-e.gone:
			err = ErrNone
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.question = 0
	e.forget(&e.partial)
	select {
	case d := <-e.answer: // at the last moment
		e.forget(&d)
	default:
	}
	return description{}, err
}
