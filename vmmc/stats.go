package vmmc

import (
	"cmp"
	"slices"

	"pinwheel/vmmc/broker"
)

// Stats returns what this node exports and imports. A broker at which it has a name gives it to pinwheel node
// exports, pinwheel top and pinwheel metrics.
func (n *Node) Stats() broker.Stats {
	s := broker.Stats{Exports: []broker.ExportStats{}, Imports: []broker.ImportStats{}}
	n.mu.Lock()
	s.Waiting, s.Refused, s.Violations = n.exporter.Waiting(), n.refused, n.violations
	for id, e := range n.exports {
		s.Exports = append(s.Exports, broker.ExportStats{
			ID: id, Bytes: uint64(len(e.memory)), Importers: n.exporter.Importers(id), Sharing: len(e.rings),
			ReceivedBytes: e.received, Notifications: e.notifications, Queued: e.queue.Len(),
		})
	}
	var outs []*outbound
	for _, d := range n.outbound {
		if d.out != nil {
			outs = append(outs, d.out)
		}
	}
	n.mu.Unlock()
	for _, o := range outs {
		s.Imports = append(s.Imports, o.stats()...)
	}
	slices.SortFunc(s.Exports, func(a, b broker.ExportStats) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortStableFunc(s.Imports, func(a, b broker.ImportStats) int {
		return cmp.Or(cmp.Compare(a.Exporter, b.Exporter), cmp.Compare(a.ID, b.ID))
	})
	return s
}

// stats are those of the imports that were granted.
func (o *outbound) stats() (all []broker.ImportStats) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, i := range o.imports {
		if i.bytes == 0 || i.err != nil {
			continue
		}
		all = append(all, broker.ImportStats{
			Exporter: o.address, ID: i.export, Bytes: i.bytes, Shared: i.shared,
			Sends: i.sends.Load(), SentBytes: i.sentBytes.Load(), Queued: len(i.notifying), Errors: i.errors.Load(),
		})
	}
	return all
}
