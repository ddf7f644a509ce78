package main

import (
	"slices"
	"strings"
	"time"

	"pinwheel/internal/tools/command"
	"pinwheel/lab/replay"
	"pinwheel/trace"
)

// model are the flags of every command that replays in virtual time.
type model struct {
	Timeline    string         `default:"dedicated" enum:"dedicated,recorded" help:"Clock to follow: ${enum}. dedicated: every rank has its own core. recorded: the recorded wall clock."`
	Threshold   command.Size   `default:"16K" help:"Register buffers of at least this size."`
	Budget      *command.Size  `placeholder:"64M" help:"Most memory that policy lru may pin on a rank. If you set it, it also binds the policies with a helper."`
	Alltoall    string         `default:"linear" enum:"linear,pairwise" help:"Algorithm of alltoall: ${enum}. linear posts all slices at once."`
	Latency     time.Duration  `default:"2us" help:"Network latency (L of LogGP)."`
	Overhead    time.Duration  `default:"300ns" help:"Processor time per message (o of LogGP)."`
	Bandwidth   float64        `default:"100" help:"Network bandwidth in Gb/s (1/G of LogGP)."`
	Eager       command.Size   `default:"16K" help:"Messages of at least this size wait for their receiver."`
	Costs       string         `default:"rdma-like" help:"Cost model of registration: one of ${costs}, the beginning of such a name, or a file that calibrate wrote."`
	PerNode     *int           `placeholder:"N" help:"Put N consecutive ranks on each node. Messages within a node need no registration, and the report shows each node."`
	IdleCores   *int           `placeholder:"K" help:"The helpers of a node share K idle cores. Default: every helper has a core of its own. Needs --per-node."`
	IdlePolicy  string         `default:"auto" enum:"auto,conservative,aggressive,off" help:"Who gets the idle cores, as PINWHEEL_IDLE_POLICY: ${enum}."`
	HelperShare percent        `placeholder:".5%" help:"No core is idle: the most of a rank's time that Pinwheel may cost, as PINWHEEL_COST; with --idle-cores, of a rank whose helper has no idle core under auto. Policies other than pinwheel have no helper then. 100%: each helper has a core of its own. Default of compare and explain: as on the machine of the trace, .5% unless that had an idle core for each helper, or is not known. Otherwise: 100%."`
	Opening     *time.Duration `placeholder:"100ms" help:"How long it takes after the first use until changes of mappings are noticed: so long, policies with a helper register for each use. Default of compare and explain: as long as in the trace. Otherwise, and if it is not known: 0."`
	Workers     int            `default:"1" placeholder:"N" help:"Most registrations that each helper of policy pinwheel does at the same time, on idle cores of their own."`
	TimeSlice   time.Duration  `default:"3ms" help:"Time slice of helpers that share a core (t_slice of the paper's equation 2)."`
}

// oneCost is the flag of commands that replay policy pinwheel once.
type oneCost struct {
	Cost percent `placeholder:"0.5%" help:"Most that late uses may cost a rank under policy pinwheel, as a share of its time; without an idle core, uses on demand. Default: 0.5%."`
}

const (
	defaultTimeSlice = 3 * time.Millisecond
	mostIdleCores    = 4096 // far more than any node has
)

// options translates the flags, and what --cost says; see forTrace for the rest.
func (m *model) options(costs ...percent) (replay.Options, error) {
	var o replay.Options
	switch {
	case m.Threshold < 1 || m.Eager < 1 || m.Budget != nil && *m.Budget < 1:
		return o, command.Usagef("--threshold, --budget and --eager must be at least 1 byte")
	case m.PerNode != nil && *m.PerNode < 1:
		return o, command.Usagef("--per-node must be at least 1")
	case m.IdleCores == nil && (m.IdlePolicy != "auto" || m.TimeSlice != defaultTimeSlice):
		return o, command.Usagef("--idle-policy and --time-slice are for --idle-cores")
	case m.IdleCores != nil && m.PerNode == nil:
		return o, command.Usagef("--idle-cores needs --per-node")
	case m.IdleCores != nil && (*m.IdleCores < 0 || *m.IdleCores > mostIdleCores):
		return o, command.Usagef("--idle-cores must be from 0 to %d", mostIdleCores)
	case m.Opening != nil && *m.Opening < 0:
		return o, command.Usagef("--opening must not be negative")
	case m.Workers < 1:
		return o, command.Usagef("--workers must be at least 1")
	case m.TimeSlice <= 0:
		return o, command.Usagef("--time-slice must be positive")
	}
	registration, err := loadCosts(m.Costs)
	if err != nil {
		return o, err
	}
	o = replay.Options{
		Timeline:         replay.Timeline(m.Timeline),
		ThresholdBytes:   uint64(m.Threshold),
		AlltoallPairwise: m.Alltoall == "pairwise",
		Network:          replay.DefaultNetwork(),
		Costs:            registration.Costs,
		Provider:         registration.Name,
		HelperShare:      float64(m.HelperShare),
		Workers:          m.Workers,
		WatchNs:          m.watchNs(0),
	}
	if len(costs) == 1 {
		o.Cost = float64(costs[0])
	} else {
		for _, cost := range costs {
			o.CostCurve = append(o.CostCurve, float64(cost))
		}
	}
	if m.Budget != nil {
		o.BudgetBytes, o.BudgetHelped = int64(*m.Budget), true
	}
	if m.IdleCores != nil {
		o.Cores = &replay.IdleCores{PerNode: *m.IdleCores, Policy: m.IdlePolicy, SliceNs: int64(m.TimeSlice)}
	}
	o.Network.LatencyNs, o.Network.OverheadNs = float64(m.Latency), float64(m.Overhead)
	o.Network.BytesPerNs = m.Bandwidth / 8
	o.Network.EagerBytes = uint64(m.Eager)
	if err := o.Check(); err != nil {
		return o, command.AsUsage(err)
	}
	return o, nil
}

// watchNs is how long it takes until changes of mappings are noticed: as a flag says, or else as it was recorded.
func (m *model) watchNs(recorded int64) int64 {
	if m.Opening != nil {
		return int64(*m.Opening)
	}
	return recorded
}

// forTrace adds what depends on the trace.
func (m *model) forTrace(o replay.Options, f *trace.File) replay.Options {
	if m.PerNode != nil {
		o.Nodes = slices.Collect(slices.Chunk(f.Ranks(), *m.PerNode))
	}
	return o
}

// checkPolicies makes an unknown policy a fault of the arguments.
func checkPolicies(names []string) error {
	if err := replay.CheckPolicies(names); err != nil {
		return command.AsUsage(err)
	}
	for i, n := range names {
		if slices.Contains(names[:i], n) {
			return command.Usagef("policy %s is named twice in --policy %s", n, strings.Join(names, ","))
		}
	}
	return nil
}
