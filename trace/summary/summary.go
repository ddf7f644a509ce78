package summary

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"pinwheel/mem"
	"pinwheel/trace"
)

// Rank is what one rank of a trace does.
type Rank struct {
	Trace        string   `json:"trace"`
	Rank         int      `json:"rank"`
	Records      uint64   `json:"records"`
	WallNs       int64    `json:"wall_ns"`       // end of the last call
	CPUNs        int64    `json:"cpu_ns"`        // processor time until then
	Comms        int      `json:"comms"`         // communicators used
	CoveredBytes uint64   `json:"covered_bytes"` // pages that all regions cover together, in bytes
	Ops          []Op     `json:"ops"`
	Regions      []Region `json:"regions"`
	Sites        []Site   `json:"sites"`
}

// Op counts the records of one operation.
type Op struct {
	Op       string `json:"op"`
	Records  uint64 `json:"records"`
	Bytes    uint64 `json:"bytes"`
	MinBytes uint64 `json:"min_bytes"` // of buffers
	MaxBytes uint64 `json:"max_bytes"`
}

// Region is one buffer: a range of addresses that calls use as it is.
type Region struct {
	Addr  string `json:"addr"` // hexadecimal, with 0x
	Bytes uint64 `json:"bytes"`
	Uses  uint64 `json:"uses"`
	Sites int    `json:"sites"` // call sites that use it
	// UsedShare is the share of the wall-clock time from a use's start to
	// its end; of nonblocking operations from post to wait.
	UsedShare float64 `json:"used_share"`
	Period    Period  `json:"period"`     // start to start, wall clock
	CPUPeriod Period  `json:"cpu_period"` // start to start, processor time

	rng mem.Range
}

// Site is one call site.
type Site struct {
	Stack     string `json:"stack"` // return addresses, innermost first
	Op        string `json:"op"`
	Uses      uint64 `json:"uses"`
	Regions   int    `json:"regions"`
	MinBytes  uint64 `json:"min_bytes"`
	MaxBytes  uint64 `json:"max_bytes"`
	Period    Period `json:"period"` // between uses of the same region, wall clock
	CPUPeriod Period `json:"cpu_period"`
}

// Options say what to summarise.
type Options struct {
	// ThresholdBytes leaves smaller buffers out of regions and sites.
	ThresholdBytes uint64
}

// Read summarises one rank of a trace. Memory grows with the number of
// distinct regions and call sites, not with the length of the trace.
func Read(f *trace.File, rank int, o Options) (*Rank, error) {
	rr, err := f.Rank(rank)
	if err != nil {
		return nil, err
	}
	c := collector{
		out:     &Rank{Trace: f.Header().Program, Rank: rank},
		ops:     map[trace.Op]*Op{},
		regions: map[mem.Range]*regionStats{},
		sites:   map[siteKey]*siteStats{},
		uses:    map[useKey]*lastUse{},
		pending: map[uint32][]pendingUse{},
		comms:   map[int32]bool{},
	}
	var r trace.Record
	for {
		if err := rr.Next(&r); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		c.add(&r, o.ThresholdBytes)
	}
	return c.finish(rr), nil
}

type siteKey struct {
	stack uint32
	op    trace.Op
}

type useKey struct {
	siteKey
	rng mem.Range
}

type lastUse struct{ startNs, startCPUNs int64 }

type pendingUse struct {
	region  *regionStats
	startNs int64
}

type regionStats struct {
	Region
	last      lastUse
	usedNs    int64
	wall, cpu distribution
	sites     map[siteKey]struct{}
}

type siteStats struct {
	Site
	wall, cpu distribution
}

type collector struct {
	out     *Rank
	ops     map[trace.Op]*Op
	regions map[mem.Range]*regionStats
	sites   map[siteKey]*siteStats
	uses    map[useKey]*lastUse
	pending map[uint32][]pendingUse
	comms   map[int32]bool
}

func (c *collector) add(r *trace.Record, threshold uint64) {
	c.out.Records++
	c.out.WallNs, c.out.CPUNs = r.EndNs, r.EndCPUNs
	c.comms[r.Comm] = true
	c.addOp(r)
	if r.Op == trace.OpWait || r.Op == trace.OpFree {
		for _, p := range c.pending[r.Req] {
			p.region.usedNs += r.EndNs - p.startNs
		}
		delete(c.pending, r.Req)
		return
	}
	rng, err := mem.NewRange(r.Addr, r.Bytes)
	if err != nil || r.Bytes < threshold || r.Op == trace.OpUnmap {
		return // no buffer
	}
	key := siteKey{r.Stack, r.Op}
	now := lastUse{r.StartNs, r.StartCPUNs}
	g := c.regions[rng]
	if g == nil {
		g = &regionStats{Region: Region{Addr: fmt.Sprintf("%#x", uint64(r.Addr)), Bytes: r.Bytes, rng: rng},
			sites: map[siteKey]struct{}{}}
		c.regions[rng] = g
	} else {
		g.wall.add(now.startNs - g.last.startNs)
		g.cpu.add(now.startCPUNs - g.last.startCPUNs)
	}
	g.last = now
	g.Uses++
	g.sites[key] = struct{}{}
	if r.Req != 0 {
		c.pending[r.Req] = append(c.pending[r.Req], pendingUse{g, r.StartNs})
	} else {
		g.usedNs += r.EndNs - r.StartNs
	}
	s := c.sites[key]
	if s == nil {
		s = &siteStats{Site: Site{Op: r.Op.String(), MinBytes: r.Bytes}}
		c.sites[key] = s
	}
	s.Uses++
	s.MinBytes, s.MaxBytes = min(s.MinBytes, r.Bytes), max(s.MaxBytes, r.Bytes)
	if last := c.uses[useKey{key, rng}]; last != nil {
		s.wall.add(now.startNs - last.startNs)
		s.cpu.add(now.startCPUNs - last.startCPUNs)
		*last = now
	} else {
		c.uses[useKey{key, rng}] = &now
		s.Regions++
	}
}

func (c *collector) addOp(r *trace.Record) {
	op := c.ops[r.Op]
	if op == nil {
		op = &Op{Op: r.Op.String(), MinBytes: r.Bytes}
		c.ops[r.Op] = op
	}
	op.Records++
	op.Bytes += r.Bytes
	op.MinBytes, op.MaxBytes = min(op.MinBytes, r.Bytes), max(op.MaxBytes, r.Bytes)
}

// finish orders everything so that the same trace gives the same summary.
func (c *collector) finish(rr *trace.RankReader) *Rank {
	out := c.out
	out.Comms = len(c.comms)
	for _, op := range slices.Sorted(maps.Keys(c.ops)) {
		out.Ops = append(out.Ops, *c.ops[op])
	}
	var covered mem.Set
	for _, g := range c.regions {
		covered.Add(g.rng.PageAligned())
		g.Sites = len(g.sites)
		g.Period, g.CPUPeriod = g.wall.period(), g.cpu.period()
		if out.WallNs > 0 {
			g.UsedShare = float64(g.usedNs) / float64(out.WallNs)
		}
		out.Regions = append(out.Regions, g.Region)
	}
	out.CoveredBytes = covered.Bytes()
	slices.SortFunc(out.Regions, func(a, b Region) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(b.Uses, a.Uses), cmp.Compare(a.rng.Start, b.rng.Start))
	})
	keys := slices.SortedFunc(maps.Keys(c.sites), func(a, b siteKey) int {
		return cmp.Or(cmp.Compare(c.sites[b].MaxBytes, c.sites[a].MaxBytes),
			cmp.Compare(a.stack, b.stack), cmp.Compare(a.op, b.op))
	})
	for _, k := range keys {
		s := c.sites[k]
		s.Stack = formatStack(rr.Frames(k.stack))
		s.Period, s.CPUPeriod = s.wall.period(), s.cpu.period()
		out.Sites = append(out.Sites, s.Site)
	}
	return out
}

func formatStack(frames []uint64) string {
	var b []byte
	for i, f := range frames {
		if i > 0 {
			b = append(b, ';')
		}
		b = fmt.Appendf(b, "%x", f)
	}
	return string(b)
}
