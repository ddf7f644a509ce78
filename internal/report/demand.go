package report

import (
	"fmt"
	"strings"
)

// Demand is what uses on demand did: each registered its memory for itself, because no processor was idle, or because
// its call site had other memory each time.
type Demand struct {
	Uses  uint64 `json:"uses"`
	Fresh uint64 `json:"fresh_uses"` // of them, those for the second reason
	Bytes int64  `json:"avg_bytes"`  // registered so, on average
	// RegisterNs is how long they took to register and to deregister. Cost.DemandNs is how much of that a cache would have
	// spared, with LookNs, the processor time of deciding which uses they are.
	RegisterNs int64 `json:"register_ns"`
	LookNs     int64 `json:"look_ns"`
}

func (d *Demand) add(o *Demand) {
	d.Uses += o.Uses
	d.Fresh += o.Fresh
	d.Bytes += o.Bytes
	d.RegisterNs += o.RegisterNs
	d.LookNs += o.LookNs
}

// line says what was registered on demand, "" if nothing was.
func (d *Demand) line() string {
	if d.Uses == 0 {
		return ""
	}
	var why []string
	if n := d.Uses - d.Fresh; n > 0 {
		why = append(why, fmt.Sprintf("%d as no core was idle", n))
	}
	if d.Fresh > 0 {
		why = append(why, fmt.Sprintf("%d where memory was new each time", d.Fresh))
	}
	return fmt.Sprintf("On demand: %s registered memory for no other, in %.1f ms: %s", count(d.Uses, "use"),
		float64(d.RegisterNs)/1e6, strings.Join(why, ", "))
}
