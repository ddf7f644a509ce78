package main

import (
	"fmt"
	"slices"

	"github.com/alecthomas/kong"

	"pinwheel/internal/settings"
	"pinwheel/internal/tools/command"
	"pinwheel/lab/replay"
	"pinwheel/trace"
)

// percent is a share as a flag: 5%, 2.5; at most 1.
type percent float64

func (p *percent) Decode(ctx *kong.DecodeContext) error {
	command.TakeNegative(ctx)
	text, err := command.PopText(ctx, "percent")
	if err != nil {
		return err
	}
	*p, err = parsePercent(text)
	return err
}

func parsePercent(text string) (percent, error) {
	share, err := settings.ParseShare(text)
	if err == nil && share == 0 {
		err = fmt.Errorf("%q leaves policy %s nothing; %s needs nothing", text, replay.Pinwheel, replay.LeavePinned)
	}
	return percent(share), err
}

// percents is a list of them, each once.
type percents []percent

// Decode implements kong.MapperValue.
func (l *percents) Decode(ctx *kong.DecodeContext) error {
	var items command.Names
	if err := items.Decode(ctx); err != nil {
		return err
	}
	for _, item := range items {
		p, err := parsePercent(item)
		if err == nil && slices.Contains(*l, p) {
			err = fmt.Errorf("%q is given twice", item)
		}
		if err != nil {
			return err
		}
		*l = append(*l, p)
	}
	return nil
}

// pickRanks returns the ranks to report on: those asked for, or all that the
// trace has. To ask for others is a fault of the arguments.
func pickRanks(f *trace.File, asked []int) ([]int, error) {
	have := f.Ranks()
	if len(asked) == 0 {
		return have, nil
	}
	for i, r := range asked {
		if slices.Contains(asked[:i], r) {
			return nil, command.Usagef("rank %d is named twice in --ranks", r)
		}
		if !slices.Contains(have, r) {
			return nil, command.Usagef("%s has no rank %d (it has %d of %d ranks)", f.Header().Program, r, len(have), f.Header().Ranks)
		}
	}
	return asked, nil
}

// eachTrace calls do with every trace, and says what there is to know of one:
// that it is torn, or lacks calls. A trace that fails is complained about, in
// one line, and the others are still done.
func eachTrace(e *command.Env, paths []string, do func(f *trace.File) error) {
	for _, path := range paths {
		if err := oneTrace(e, path, do); err != nil {
			e.Complain(err)
		}
	}
}

func oneTrace(e *command.Env, path string, do func(f *trace.File) error) error {
	f, err := trace.Open(path)
	if err != nil {
		return err
	}
	defer f.Close() // only read from
	leftOut, err := f.LeftOut()
	if err == nil {
		err = do(f)
	}
	torn := f.Torn()
	switch {
	case err != nil && torn != nil:
		return fmt.Errorf("%w (%w)", err, torn)
	case err != nil:
		return err
	case torn != nil:
		e.Note("%v", torn)
	}
	if leftOut != "" {
		e.Note("%s: not in the trace: %s; what waits for them takes as long as it took", f.Header().Program, leftOut)
	}
	return nil
}
