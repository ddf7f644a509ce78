package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"pinwheel/internal/outfile"
	"pinwheel/internal/tools/command"
	"pinwheel/lab/replay/micro"
	"pinwheel/schedule"
)

type microCmd struct {
	Out       string    `short:"o" default:"results/papers" help:"Directory for micro.jsonl and micro.md."`
	Costs     string    `default:"rdma-like" help:"Cost model of registration: one of ${costs}, or a file."`
	Bandwidth []float64 `placeholder:"Gb/s" default:"100,16" help:"Bandwidths of the network in Gb/s."`
}

func (microCmd) Help() string {
	return `Replays the microbenchmarks of two papers in virtual time: bandwidth and pinned memory over the size of messages, with buffers
that are copied through, registered for each use, kept, registered chunk by chunk, and managed by policies paper and pinwheel.
It takes a second.

Example:
  nasreplay micro --out results/papers`
}

func (c *microCmd) Run(e *command.Env) error {
	o := micro.Options{
		Sizes:  []uint64{16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 5 << 20, 16 << 20, 64 << 20},
		GbPerS: c.Bandwidth, Costs: []float64{schedule.DefaultCost, schedule.DefaultCost / 50},
	}
	costs, err := loadCosts(c.Costs)
	if err != nil {
		return err
	}
	o.Replay.Costs, o.Replay.Provider = costs.Costs, costs.Name
	rs, err := micro.Compare(context.Background(), o)
	if err != nil {
		return command.AsUsage(err) // of the bandwidths: nothing else is the user's
	}
	raw, page := filepath.Join(c.Out, "micro.jsonl"), filepath.Join(c.Out, "micro.md")
	err = outfile.Write(raw, func(w io.Writer) error {
		for i := range rs {
			if err := writeJSON(w, &rs[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	err = outfile.WriteText(page, micro.Page(rs))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.Stdout, "%s and %s written\n", raw, page)
	return err
}
