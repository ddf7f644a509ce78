package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"pinwheel/internal/tools/command"
	"pinwheel/lab/replay"
	"pinwheel/lab/replay/report"
	"pinwheel/lab/replay/scale"
	"pinwheel/mem"
	"pinwheel/trace"
)

type scaleCmd struct {
	format
	model
	oneCost
	Kind       string        `default:"strong" enum:"strong,weak,copies" help:"How the run grows: ${enum}. strong: the same problem on more ranks. weak: a problem that grows with them (BT, FT, SP). copies: the recorded run several times, side by side."`
	To         numbers       `placeholder:"N" help:"Numbers of ranks. Default: those up to 4096 that the program runs on, each about four times the one before."`
	Layout     string        `placeholder:"AxB" help:"FT: the grid of ranks. Default: that of the program."`
	Class      string        `placeholder:"D" help:"FT: the class of a larger problem. Default: as recorded."`
	Iterations int           `placeholder:"N" help:"Iterations of the main loop (not for copies). Default: as recorded. If N is more, recorded ones are repeated."`
	Policy     command.Names `placeholder:"NAME" help:"Policies to run. Default: leave-pinned, paper, pinwheel, oracle."`
	Traces     []string      `arg:"" name:"trace" help:"Traces (.pwt)."`
}

func (scaleCmd) Help() string {
	return `Strong scaling follows how each program divides its problem: ` + strings.Join(scale.Programs(), ", ") + `. Of other programs one line says
that they have no rule. The table shows what nodes pin: with --per-node N that of N consecutive ranks, otherwise every rank has a node
of its own.

Examples:
  nasreplay scale --to 16,64,256,1024,4096 ft.B.4.pwt
  nasreplay scale --kind weak --to 16,32,64 ft.B.4.pwt
  nasreplay scale --kind copies --per-node 64 --idle-cores 8 --to 4096 cg.C.4.pwt
  nasreplay scale --to 16 --layout 2x8 --json ft.C.4.pwt
  nasreplay scale --to 32 --layout 2x16 --class D --iterations 25 --budget 2500M ft.C.16.pwt`
}

// mostRanks bounds the default of --to, and fewer than what --to may say.
const (
	mostRanksByDefault = 4096
	mostRanks          = 65536
)

func (c *scaleCmd) Run(e *command.Env) error {
	o, err := c.options(c.Cost)
	if err != nil {
		return err
	}
	o.Policies = c.Policy
	if len(o.Policies) == 0 {
		o.Policies = report.ChartPolicies()
	}
	d := scale.Options{Iterations: c.Iterations, Class: c.Class}
	if err := c.check(&d); err != nil {
		return err
	}
	first := true
	eachTrace(e, c.Traces, func(f *trace.File) error {
		b, err := scale.Load(f)
		if err != nil {
			return err
		}
		kind := scale.Kind(c.Kind)
		to := []int(c.To)
		if len(to) == 0 {
			to = defaultRanks(b, kind)
		}
		var rs []scale.Result
		for _, ranks := range to {
			r, err := c.compare(e, b, kind, ranks, o, d)
			if errors.Is(err, scale.ErrUnfit) {
				e.Note("%v", err)
				continue
			}
			if err != nil {
				return fmt.Errorf("%s on %d ranks: %w", b.Name(), ranks, err)
			}
			rs = append(rs, r...)
		}
		defer func() { first = false }()
		return c.print(e, rs, first)
	})
	return nil
}

// check translates the flags that say how a run is derived.
func (c *scaleCmd) check(d *scale.Options) error {
	if err := checkPolicies(c.Policy); err != nil {
		return err
	}
	if c.Iterations < 0 || c.Kind == "copies" && (c.Iterations > 0 || c.Layout != "" || c.Class != "") {
		return command.Usagef("--iterations must not be negative, and --iterations, --layout and --class are not for --kind copies")
	}
	if c.Timeline != string(replay.Dedicated) {
		return command.Usagef("--timeline %s is for recorded runs: a derived run has no recorded wall clock", c.Timeline)
	}
	for i, n := range c.To {
		if n < 1 || n > mostRanks || slices.Contains(c.To[:i], n) {
			return command.Usagef("--to %d: must be from 1 to %d, each once", n, mostRanks)
		}
	}
	if c.Layout == "" {
		return nil
	}
	a, b, ok := strings.Cut(c.Layout, "x")
	var errs [2]error
	d.Layout[0], errs[0] = strconv.Atoi(a)
	d.Layout[1], errs[1] = strconv.Atoi(b)
	if !ok || errors.Join(errs[:]...) != nil || d.Layout[0] < 1 || d.Layout[1] < 1 {
		return command.Usagef("--layout %s: want two numbers of ranks, as 2x8", c.Layout)
	}
	return nil
}

// defaultRanks are the numbers of ranks to derive if none are named.
func defaultRanks(b *scale.Base, kind scale.Kind) (to []int) {
	for n := b.Ranks(); n <= mostRanksByDefault; n *= 4 {
		if kind == scale.Copies || scale.Fits(b, n, kind) {
			to = append(to, n)
		}
	}
	if len(to) == 0 {
		to = []int{b.Ranks()} // says why
	}
	return to
}

func (c *scaleCmd) compare(e *command.Env, b *scale.Base, kind scale.Kind, ranks int, o replay.Options, d scale.Options) ([]scale.Result, error) {
	perNode := 1
	if c.PerNode != nil {
		perNode = *c.PerNode
	}
	bar := progress(e, -1, fmt.Sprintf("%s on %d ranks", b.Name(), ranks))
	defer func() { _ = bar.Finish() }()
	if e.Terminal {
		o.Progress = func(records int64) { _ = bar.Add64(records) }
	}
	return scale.Compare(context.Background(), b, kind, ranks, perNode, o, d)
}

func (c *scaleCmd) print(e *command.Env, rs []scale.Result, first bool) error {
	switch {
	case len(rs) == 0:
		return nil
	case c.JSON:
		for i := range rs {
			if err := writeJSON(e.Stdout, &rs[i]); err != nil {
				return err
			}
		}
		return nil
	case c.CSV:
		return resultCSV(rs).writeCSV(e.Stdout, first)
	}
	t := table{header: []string{">ranks", ">nodes", "policy", ">node peak", ">mean", ">average", ">saved", ">first", ">late", ">run time", ">slowdown",
		">captured avg", ">simulated"}}
	for i := range rs {
		r := &rs[i]
		t.add(strconv.Itoa(r.Ranks), strconv.Itoa(r.Nodes), r.Policy, mem.FormatBytes(uint64(r.NodePeakBytes)), mem.FormatBytes(uint64(r.NodeMeanPeakBytes)),
			mem.FormatBytes(uint64(r.NodeAvgBytes)), savedOf(rs, r), strconv.FormatInt(r.FirstRegs, 10), strconv.FormatInt(r.LateUses(), 10), formatNs(r.RunNs),
			report.Number(r.Slowdown, "%.4f"), report.Number(r.CapturedAvg, "%.3f"), strconv.Itoa(r.SimulatedRanks))
	}
	limit := ""
	if c.Budget != nil {
		limit = fmt.Sprintf(", budget %s", mem.FormatBytes(uint64(*c.Budget)))
	}
	fmt.Fprintf(e.Stdout, "%s: %s scaling, %d ranks a node, costs of %s%s\n", rs[0].Trace, rs[0].Scaling, rs[0].PerNode, rs[0].Provider, limit)
	if err := t.write(e.Stdout, "  "); err != nil {
		return err
	}
	_, err := fmt.Fprintln(e.Stdout)
	return err
}

// savedOf is what a policy saves on average against leave-pinned on as many ranks, if that was run.
func savedOf(rs []scale.Result, r *scale.Result) string {
	for i := range rs {
		if b := &rs[i]; b.Policy == replay.LeavePinned && b.Ranks == r.Ranks && b != r {
			return change(r.NodeAvgBytes, b.NodeAvgBytes)
		}
	}
	return ""
}
