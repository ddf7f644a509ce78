package replay

import (
	"fmt"
	"strings"

	"pinwheel/trace"
)

// shownRanks is how many ranks an error about all of them spells out.
const shownRanks = 8

// stuck reports that no rank can go on. Where a rank's records ended before
// finalize, those that wait for it end with it: the trace was cut off.
func (e *engine) stuck() error {
	torn := false
	for _, r := range e.ranks {
		torn = torn || r.torn
	}
	if !torn {
		return e.deadlock()
	}
	for _, r := range e.ranks {
		if r.state != finished {
			r.torn = true
			e.finish(r, r.began)
		}
	}
	return nil
}

func (e *engine) deadlock() error {
	var who []string
	for _, r := range e.ranks {
		if r.state == finished {
			continue
		}
		if len(who) == shownRanks {
			who = append(who, fmt.Sprintf("and %d more", e.live-shownRanks))
			break
		}
		who = append(who, fmt.Sprintf("rank %d in %s (line %d)", r.id, r.describe(), r.call.line()))
	}
	return fmt.Errorf("deadlock: %s", strings.Join(who, ", "))
}

// describe says what a rank is waiting for.
func (r *rank) describe() string {
	c := &r.call
	switch {
	case r.coll != nil:
		return fmt.Sprintf("%v on communicator %d", c.op, c.recs[0].Comm)
	case c.op == trace.OpWait:
		for i := range c.recs {
			q := r.requests[c.recs[i].Req]
			if q == nil || q.msg == nil || q.send && q.msg.sendDone != unknown || !q.send && q.msg.recvDone != unknown {
				continue
			}
			if q.send {
				return fmt.Sprintf("wait for isend to %d tag %d from line %d", q.msg.dst, q.msg.tag, q.line)
			}
			return fmt.Sprintf("wait for irecv from %d tag %d from line %d", q.msg.src, q.msg.tag, q.line)
		}
	}
	rec := &c.recs[0]
	return fmt.Sprintf("%v with %d tag %d", c.op, rec.Peer, rec.Tag)
}

// leftovers reports a message that only one side knows of.
func (e *engine) leftovers() error {
	for _, r := range e.ranks {
		if r.torn {
			return nil
		}
	}
	if e.match.pending == 0 {
		return nil
	}
	m := e.match.leftover()
	if m.sendAt != unknown {
		return fmt.Errorf("no receive for a message: rank %d sends %d bytes to rank %d with tag %d (line %d); %d unmatched in all", m.src, m.bytes, m.dst, m.tag, m.sendLine, e.match.pending)
	}
	return fmt.Errorf("no send for a receive: rank %d receives from rank %d with tag %d (line %d); %d unmatched in all", m.dst, m.src, m.tag, m.recvLine, e.match.pending)
}
