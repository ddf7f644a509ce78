package broker

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// describeTimeout bounds a list: some processes may be stopped.
const describeTimeout = time.Second

// list describes the exporters that a user may see. All are asked at once.
func (b *broker) list(c *conn, uid uint32) error {
	b.mu.Lock()
	var seen []*exporter
	for k, e := range b.exporters {
		if uid == 0 || uid == k.uid {
			seen = append(seen, e)
		}
	}
	b.mu.Unlock()
	slices.SortFunc(seen, func(x, y *exporter) int {
		return cmp.Or(cmp.Compare(x.uid, y.uid), cmp.Compare(x.name, y.name))
	})
	ctx, cancel := context.WithTimeout(b.ctx, describeTimeout)
	defer cancel()
	answers := make([]description, len(seen))
	defer func() {
		for i, e := range seen {
			e.forget(&answers[i])
		}
	}()
	var all sync.WaitGroup
	for i, e := range seen {
		all.Go(func() { answers[i], answers[i].err = e.describe(ctx) })
	}
	all.Wait()
	for i, e := range seen {
		a := &answers[i]
		p := Process{Name: e.name, PID: e.pid, UID: e.uid, Stats: *a.rest()}
		switch {
		case errors.Is(a.err, errTold):
			p.Error = a.err.Error()
		case a.err != nil:
			p.Error = "it does not answer"
		}
		err := c.send(b.ctx, &message{Kind: process, Process: &p})
		if err == nil {
			err = a.tell(b.ctx, c, 0)
		}
		if err != nil {
			return nil // the client has gone
		}
	}
	return c.send(b.ctx, &message{Kind: done, Stats: &Stats{}})
}
