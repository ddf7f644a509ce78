package main

import (
	"context"
	"fmt"
	"sync"

	"pinwheel/internal/tools/command"
	"pinwheel/lab/replay"
	"pinwheel/mem"
	"pinwheel/predictor"
	"pinwheel/profile"
	"pinwheel/trace"
)

type learnCmd struct {
	model
	oneCost
	Out   string `short:"o" required:"" placeholder:"FILE" help:"Profile to write."`
	Force bool   `help:"Replace an existing file."`
	Trace string `arg:"" help:"Trace (.pwt)."`
}

func (learnCmd) Help() string {
	return `Replays a trace under policy pinwheel, and keeps what every rank has learned at its end. compare --profile begins with that.

Examples:
  nasreplay learn results/traces/ft.B.4.pwt -o ft.profile
  nasreplay compare --profile ft.profile results/traces-again/ft.B.4.pwt`
}

func (c *learnCmd) Run(e *command.Env) error {
	o, err := c.options(c.Cost)
	if err != nil {
		return err
	}
	if err := checkOut(c.Out, c.Force, []string{c.Trace}); err != nil {
		return err
	}
	return oneTrace(e, c.Trace, func(f *trace.File) error {
		o := c.forTrace(o, f)
		o.Policies = []string{replay.Pinwheel}
		o.EnsureDefaults()
		k, err := profile.OfTrace(f, o.ThresholdBytes, o.Window)
		if err != nil {
			return err
		}
		parts, err := learn(o, f)
		if err != nil {
			return err
		}
		if err := profile.Write(c.Out, k, nil, parts); err != nil {
			return err
		}
		bytes := 0
		for _, p := range parts {
			bytes += p.Bytes()
		}
		return wrote(e, c.Out, "%d ranks, %s each", len(parts), mem.FormatBytes(uint64(bytes/max(len(parts), 1))))
	})
}

// learn replays a trace, and returns what its ranks have learned.
func learn(o replay.Options, f *trace.File) (parts []profile.Part, err error) {
	var mu sync.Mutex // protects parts and failed
	var failed error
	o.Learned = func(rank int, l predictor.Trained) {
		p, err := profile.NewPart(rank, &l)
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			failed = fmt.Errorf("rank %d: %w", rank, err)
		}
		parts = append(parts, p)
	}
	if _, err := replay.Compare(context.Background(), o, f); err != nil {
		return nil, fmt.Errorf("%s: %w", f.Header().Program, err)
	}
	return parts, failed
}

// profiled are the flags of commands that may begin with a profile.
type profiled struct {
	Profile      string `placeholder:"FILE" help:"Begin policy pinwheel with what learn has kept of another run of the same job."`
	ProfileForce bool   `help:"Use --profile for traces of other jobs, too."`
}

// begin has the replay of a trace begin with the profile, if that is of the same job. Else one line says why not.
func (p *profiled) begin(e *command.Env, o *replay.Options, f *trace.File) error {
	if p.Profile == "" {
		return nil
	}
	in, err := profile.Open(p.Profile)
	if err != nil {
		return err
	}
	defer in.Close() // only read from
	o.EnsureDefaults()
	k, err := profile.OfTrace(f, o.ThresholdBytes, o.Window)
	if err != nil {
		return err
	}
	if why := k.Differs(in.Key); why != "" && !p.ProfileForce {
		e.Note("%s: %s is not used: %s", f.Header().Program, p.Profile, why)
		return nil
	}
	known := map[int]*predictor.Trained{}
	for _, rank := range in.Ranks() {
		if known[rank], err = in.Trained(rank); err != nil {
			return fmt.Errorf("%s: %w", p.Profile, err)
		}
	}
	o.Trained = func(rank int) *predictor.Trained { return known[rank] }
	return nil
}

func (p *profiled) check() error {
	if p.ProfileForce && p.Profile == "" {
		return command.Usagef("--profile-force is for --profile")
	}
	return nil
}
