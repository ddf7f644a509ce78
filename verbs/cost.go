package verbs

// Cost is the linear model of the paper "Scalable Memory Registration for
// High Performance Networks Using Helper Threads" (CF'11), section 3.2: an
// operation over p pages takes PerPageNs*p + FixedNs nanoseconds.
type Cost struct {
	PerPageNs float64 `json:"per_page_ns"`
	FixedNs   float64 `json:"fixed_ns"`
}

// maxNs, 36 years, leaves room to add durations and times.
const maxNs = 1 << 60

// Ns returns the modelled duration in nanoseconds for the given number of
// pages, 36 years at most.
func (c Cost) Ns(pages uint64) int64 {
	return int64(min(c.PerPageNs*float64(pages)+c.FixedNs, maxNs))
}

// Costs are what one provider on one machine takes to register and to
// deregister memory that is already mapped in.
type Costs struct {
	Register   Cost `json:"register"`
	Deregister Cost `json:"deregister"`
}

// DefaultCosts are those of an RDMA adapter that was not measured: of the calibration "rdma-like" in
// results/calibration. Registration is as UCX 1.13 assumes (src/uct/ib/base/ib_md.c, MEM_REG_OVERHEAD
// and MEM_REG_GROWTH); deregistration, for which UCX has no figure, is taken as half of that. The helper
// corrects costs by what it measures. It begins better with too high ones: regions are then ready early, not late.
var DefaultCosts = Costs{
	Register:   Cost{PerPageNs: 250, FixedNs: 16_000},
	Deregister: Cost{PerPageNs: 125, FixedNs: 8_000},
}
