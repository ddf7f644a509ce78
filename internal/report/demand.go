package report

import "fmt"

// Demand is what uses on demand did: each registered its memory for itself, because no processor was idle.
type Demand struct {
	Uses  uint64 `json:"uses"`
	Bytes int64  `json:"avg_bytes"` // registered so, on average
	// RegisterNs is how long they took to register and to deregister. Cost.DemandNs is how much of that a cache would have
	// spared, with LookNs, the processor time of deciding which uses they are.
	RegisterNs int64 `json:"register_ns"`
	LookNs     int64 `json:"look_ns"`
}

func (d *Demand) add(o *Demand) {
	d.Uses += o.Uses
	d.Bytes += o.Bytes
	d.RegisterNs += o.RegisterNs
	d.LookNs += o.LookNs
}

// line says what was registered on demand, "" if nothing was.
func (d *Demand) line() string {
	if d.Uses == 0 {
		return ""
	}
	return fmt.Sprintf("No idle core: %s registered memory on demand, in %.1f ms", count(d.Uses, "use"),
		float64(d.RegisterNs)/1e6)
}
