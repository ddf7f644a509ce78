package main

import (
	"errors"
	"fmt"

	"pinwheel/internal/machine"
	"pinwheel/internal/outfile"
	"pinwheel/internal/tools/command"
	"pinwheel/mem"
	"pinwheel/verbs"
	"pinwheel/verbs/calibrate"
)

type calibrateCmd struct {
	format
	Provider string       `default:"auto" enum:"auto,rdma,uring,mlock,sim" help:"What to measure: ${enum}."`
	Out      string       `short:"o" placeholder:"FILE" help:"Write the calibration here, for compare --costs FILE."`
	MaxSize  command.Size `default:"128M" help:"Largest registration to measure."`
	Rounds   int          `default:"99" help:"How often every size is measured."`
	Between  command.Size `default:"0" help:"Write so much memory before each operation, as a program that computes does: several times the processor's caches."`
	Beside   int          `default:"0" help:"Have so many threads write memory meanwhile, as much as --between says, as other ranks on the node do."`
	Points   bool         `help:"Show every size that was measured, with its residual."`
}

func (calibrateCmd) Help() string {
	return `Measures how long it takes to register and deregister memory: resident pages, pages that were never touched, and huge pages.
Fits a cost of fixed + per page * pages to each. It takes about 3 s. Nothing else should run on the machine meanwhile,
but for what --beside starts.

Examples:
  nasreplay calibrate
  nasreplay calibrate --provider uring --out uring.json && nasreplay compare --costs uring.json ft.B.4.pwt
  nasreplay calibrate --provider rdma --between 64M --beside 1 --rounds 29
  nasreplay calibrate --provider mlock --points --csv`
}

// maxRounds takes hours with the default sizes.
const maxRounds = 1_000_000

func (c *calibrateCmd) Run(e *command.Env) error {
	if c.MaxSize < command.Size(2*mem.PageSize) || c.Rounds < 1 || c.Rounds > maxRounds {
		return command.Usagef("--max-size must be at least %s and --rounds from 1 to %d", mem.FormatBytes(2*mem.PageSize), maxRounds)
	}
	if c.Beside < 0 || c.Beside > 0 && c.Between == 0 {
		return command.Usagef("--beside %d: it must not be negative, and needs --between", c.Beside)
	}
	if c.Out != "" {
		if err := outfile.Check(c.Out); err != nil {
			return err
		}
	}
	p, err := openProvider(c.Provider, verbs.DefaultCosts) // which a calibration of sim has to find again
	if err != nil {
		return err
	}
	if err := c.bound(e, p.Limits()); err != nil {
		return errors.Join(err, p.Close())
	}
	cal, err := calibrate.Run(p, calibrate.Options{MaxPages: uint64(c.MaxSize) / mem.PageSize, Rounds: c.Rounds,
		BetweenBytes: uint64(c.Between), Beside: c.Beside})
	if err = errors.Join(err, p.Close()); err != nil {
		return err
	}
	if c.Out != "" {
		if err := cal.Save(c.Out); err != nil || outfile.ToStdout(c.Out) {
			return err
		}
	}
	switch {
	case c.JSON:
		return writeJSON(e.Stdout, cal)
	case c.CSV:
		return c.table(cal).writeCSV(e.Stdout, true)
	}
	fmt.Fprintf(e.Stdout, "%s on %s, Linux %s\n", cal.Provider, cal.Machine, cal.Kernel)
	return c.table(cal).write(e.Stdout, "  ")
}

// bound refuses sizes for which there is no memory, and says so if what may be
// pinned lowers them.
func (c *calibrateCmd) bound(e *command.Env, l verbs.Limits) error {
	o := calibrate.Options{MaxPages: uint64(c.MaxSize) / mem.PageSize}
	o.EnsureDefaults(l)
	if lowered := o.MaxPages * mem.PageSize; lowered < uint64(c.MaxSize)/mem.PageSize*mem.PageSize {
		e.Note("--max-size is lowered to %s: %s allows %s to be pinned (see ulimit -l)", mem.FormatBytes(lowered), l.PinnedSource, mem.FormatBytes(uint64(l.MaxPinnedBytes)))
	}
	have, err := machine.AvailableBytes()
	if err == nil && uint64(c.Between) > have/2/uint64(c.Beside+1) {
		return command.Usagef("--between %s, --beside %d: %s of memory are available", mem.FormatBytes(uint64(c.Between)), c.Beside,
			mem.FormatBytes(have))
	}
	if most := have / 2; err == nil && o.MaxPages > most/mem.PageSize {
		err = command.Usagef("--max-size %s: all sizes together take twice as much, and %s of memory are available", mem.FormatBytes(o.MaxPages*mem.PageSize), mem.FormatBytes(have))
	}
	return err
}

func (c *calibrateCmd) table(cal *calibrate.Calibration) *table {
	t := &table{header: []string{"memory", "operation", ">fixed_ns", ">per_page_ns", ">r2", ">max_residual"}}
	if c.Points {
		t.header = []string{"memory", "operation", ">pages", ">samples", ">median_ns", ">p10_ns", ">p90_ns", ">residual"}
	}
	for _, m := range []struct {
		name string
		pair *calibrate.Pair
	}{{"touched", &cal.Touched}, {"never touched", cal.Untouched}, {"huge pages", cal.Huge}} {
		if m.pair == nil {
			continue
		}
		for _, op := range []struct {
			name string
			fit  calibrate.Fit
		}{{"register", m.pair.Register}, {"deregister", m.pair.Deregister}} {
			if !c.Points {
				t.add(m.name, op.name, fmt.Sprintf("%.1f", op.fit.FixedNs), fmt.Sprintf("%.3f", op.fit.PerPageNs), fmt.Sprintf("%.4f", op.fit.R2), fmt.Sprintf("%.4f", op.fit.MaxResidual))
				continue
			}
			for _, p := range op.fit.Points {
				t.add(m.name, op.name, fmt.Sprint(p.Pages), fmt.Sprint(p.Samples), fmt.Sprintf("%.0f", p.MedianNs), fmt.Sprintf("%.0f", p.P10Ns), fmt.Sprintf("%.0f", p.P90Ns), fmt.Sprintf("%+.4f", p.Residual))
			}
		}
	}
	return t
}
