package vmmc

import (
	"cmp"
	"slices"

	"pinwheel/comm/vmmc/broker"
)

// Stats returns what this node exports and imports. A broker at which it has a name gives it to pinwheel node
// exports, pinwheel top and pinwheel metrics.
func (n *Node) Stats() broker.Stats {
	s := broker.Stats{Exports: []broker.ExportStats{}, Imports: []broker.ImportStats{}}
	n.mu.Lock()
	defer n.mu.Unlock()
	s.Waiting, s.Total = n.exporter.Waiting(), n.total
	s.PinnedBytes = n.lessor.RegisteredBytes()
	for id, e := range n.exports {
		s.Exports = append(s.Exports, broker.ExportStats{
			ID: id, Bytes: uint64(len(e.memory)), Importers: n.exporter.Importers(id), Sharing: len(e.rings),
			Received: e.counts, Queued: e.queue.Len(),
		})
		s.Total.Received.Add(e.counts)
	}
	for _, d := range n.outbound {
		if d.out != nil {
			d.out.stats(&s)
		}
	}
	slices.SortFunc(s.Exports, func(a, b broker.ExportStats) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortStableFunc(s.Imports, func(a, b broker.ImportStats) int {
		return cmp.Or(cmp.Compare(a.Exporter, b.Exporter), cmp.Compare(a.ID, b.ID))
	})
	return s
}

// stats adds the imports of a connection that were granted. Node.mu is held.
func (o *outbound) stats(s *broker.Stats) {
	o.mu.Lock()
	defer o.mu.Unlock()
	s.Total.Sent.Add(o.past)
	for _, i := range o.imports {
		if i.bytes == 0 || i.err != nil {
			continue
		}
		c := i.counts()
		s.Total.Sent.Add(c)
		s.Imports = append(s.Imports, broker.ImportStats{
			Exporter: o.address, ID: i.export, Bytes: i.bytes, Shared: i.shared, Sent: c, Queued: len(i.notifying),
		})
	}
}

// sent counts a message.
func (i *Import) sent(bytes uint64) {
	i.sends.Inc()
	i.sentBytes.Add(bytes)
}

// failed counts a message that failed. link.mu is held.
func (i *Import) failed() {
	if i.err != nil {
		i.link.past.Errors++ // which has the other counts already
		return
	}
	i.errors++
}

// counts returns what was counted. link.mu is held.
func (i *Import) counts() broker.Sent {
	return broker.Sent{Sends: i.sends.Load(), SentBytes: i.sentBytes.Load(), Errors: i.errors}
}
