package broker

import (
	"context"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// exporter is a registered process.
type exporter struct {
	*conn
	key
	pid   int
	users []uint32
	nodes []string
	gone  chan struct{} // closed when it reads nothing any more

	turn chan struct{} // held by who asks; capacity 1

	// mu protects what follows.
	mu       sync.Mutex
	question uint64 // the last one. Answers to others came too late
	partial  Stats
	answer   chan Stats // capacity 1
}

func newExporter(c *conn, k key, pid int, m *message) *exporter {
	return &exporter{
		conn: c, key: k, pid: pid, users: m.Users, nodes: m.Nodes, gone: make(chan struct{}),
		turn: make(chan struct{}, 1), answer: make(chan Stats, 1),
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
	if m.Question != e.question {
		return nil
	}
	last, err := e.partial.add(m)
	if last {
		e.question++ // what else it says answers nothing
		e.answer <- e.partial
		e.partial = Stats{}
	}
	return err
}

// describe asks the process what it exports and imports.
func (e *exporter) describe(ctx context.Context) (Stats, error) {
	select {
	case e.turn <- struct{}{}:
		defer func() { <-e.turn }()
	case <-ctx.Done():
		return Stats{}, ctx.Err()
	}
	e.mu.Lock()
	e.question++
	e.partial = Stats{}
	select {
	case <-e.answer: // of a question that was given up
	default:
	}
	question := e.question
	e.mu.Unlock()
	if err := e.send(&message{Kind: describe, Question: question}); err != nil {
		return Stats{}, err
	}
	select {
	case s := <-e.answer:
		return s, nil
	case <-e.gone:
		return Stats{}, ErrNone
	case <-ctx.Done():
		return Stats{}, ctx.Err()
	}
}
