package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"pinwheel/internal/tools/command"
	"pinwheel/lab/testbed/live/stack"
)

type testCmd struct {
	bench
	All      bool          `help:"Every combination, not only every pair of values; goes on where it was."`
	Programs command.Names `help:"Only these programs."`
	Under    command.Names `help:"With --all: only these conditions, such as jemalloc or gdb."`
	Policies command.Names `default:"pinwheel,paper,leave-pinned,on-demand,disabled" help:"Of PINWHEEL_POLICY; or disabled."`
	Ranks    []int         `default:"2,4" help:"Numbers of ranks."`
}

var (
	errFailed      = errors.New("a run failed")
	errInterrupted = errors.New("interrupted")
)

// Run runs the combinations, a line for each.
func (c testCmd) Run() error {
	stop := interrupted()
	device, stacks, err := c.stacks()
	if err != nil {
		return err
	}
	chosen, err := c.chosen(stacks)
	if err != nil || len(chosen) == 0 {
		return err
	}
	if err := c.compile(chosen); err != nil {
		return err
	}
	if err := c.selfCheck(device, stacks); err != nil {
		return err
	}
	var s *state
	if c.All {
		stamp, err := c.stamp()
		if err != nil {
			return err
		}
		if s, err = openState(filepath.Join(c.Out, "test-all.jsonl"), stamp); err != nil {
			return err
		}
		defer s.Close()
	}
	start, pinnedAtStart := time.Now(), int64(0)
	pinnedAtStart, _ = pinned()
	bar := progress(len(chosen), "test-live")
	defer func() { _ = bar.Finish() }() // decoration
	failed, before := 0, 0
	for _, each := range chosen {
		if s != nil && s.passed(each.String()) {
			before++
			_ = bar.Add(1)
			continue
		}
		o, line := c.one(device, each)
		_ = bar.Clear()
		say("%s", line)
		_ = bar.Add(1)
		if o.Failed != "" {
			failed++
		}
		if s != nil {
			if err := s.add(o); err != nil {
				return err
			}
		}
		select {
		case <-stop:
			return errInterrupted
		default:
		}
	}
	why := leftPinned(pinnedAtStart)
	if why != "" {
		say("FAIL     %s", why)
		failed++
	}
	say("%d runs, %d of them before, %d failed, %.0f s", len(chosen), before, failed, time.Since(start).Seconds())
	if failed > 0 {
		return errFailed
	}
	return nil
}

// chosen returns the combinations to run.
func (c testCmd) chosen(stacks []stack.Stack) ([]combination, error) {
	from := programs
	if len(c.Programs) > 0 {
		from = nil
		for _, name := range c.Programs {
			p, err := programNamed(name)
			if err != nil {
				return nil, err
			}
			from = append(from, p)
		}
	}
	from = slices.DeleteFunc(slices.Clone(from), func(p program) bool {
		why := p.missing(c.Sources)
		if why != "" {
			say("skipped  %s: %s", p.name, why)
		}
		return why != ""
	})
	if !c.All {
		return pairwise(product(from, c.Policies, stacks, c.Ranks, conditions[:1])), nil
	}
	under := slices.DeleteFunc(slices.Clone(conditions), func(u condition) bool {
		why := u.missing()
		if why != "" {
			say("skipped  %s: %s", u.name, why)
		}
		return why != "" || len(c.Under) > 0 && !slices.Contains(c.Under, u.name)
	})
	return product(from, c.Policies, stacks, c.Ranks, under), nil
}

// path is where a program of an MPI library is; absolute, as a rank sees it.
func (b bench) path(mpi, name string) string {
	path, err := filepath.Abs(filepath.Join(b.Out, "programs", mpi, name))
	if err != nil {
		return name // the working directory is gone: nothing will run
	}
	return path
}

func (b bench) compile(chosen []combination) error {
	for _, c := range chosen {
		path, files := b.path(c.stack.MPI, c.program.name), c.program.files(b.Sources)
		if c.program.script(b.Sources) != "" {
			continue
		}
		if err := c.stack.Compile(path, files...); err != nil {
			return err
		}
		if c.program.module {
			if err := c.stack.CompileModule(path+".so", files...); err != nil {
				return err
			}
		}
	}
	return nil
}

// job is the combination as it is launched. Messages above 16 KiB go by
// RDMA on all stacks, so that every program has large ones.
func (b bench) job(d stack.Device, c combination) stack.Job {
	under := []string{b.Pinwheel, "run", "--policy", c.policy}
	if c.policy == disabled {
		under = []string{b.Pinwheel, "run", "--disable"}
	}
	command := []string{b.path(c.stack.MPI, c.program.name)}
	if script := c.program.script(b.Sources); script != "" {
		command = []string{python, script}
	}
	args := c.program.arguments()
	if c.under.args != "" {
		args = strings.Fields(c.under.args)
	}
	return stack.Job{
		Stack: c.stack, Device: d, Ranks: c.ranks, Under: under, Program: append(command, args...),
		Environ: append([]string{"PINWHEEL_WATCH_WAIT=y", "UCX_RNDV_THRESH=16384", "FI_OFI_RXM_SAR_LIMIT=16384",
			"FI_UNIVERSE_SIZE=" + strconv.Itoa(c.ranks)}, c.program.environ...),
	}
}

// one runs a combination and judges it.
func (b bench) one(d stack.Device, c combination) (outcome, string) {
	had := lookBefore()
	res, err := c.under.run(b.job(d, c), b.Limit)
	why := ""
	if err != nil {
		why = err.Error()
	} else {
		why = c.judge(res)
	}
	if left := had.left(); why == "" && len(left) > 0 {
		why = "left behind: " + strings.Join(left, ", ")
	}
	o := outcome{Run: c.String(), Failed: why, Seconds: res.Took.Seconds()}
	if why != "" {
		return o, fmt.Sprintf("FAIL     %s: %s\n%s", c, why, indented(res.Output))
	}
	var registrations, bytes uint64
	for _, u := range res.Uses {
		registrations, bytes = registrations+u.Regions, bytes+u.LargeBytes
	}
	return o, fmt.Sprintf("ok       %s  %.1f s, %d registrations, %d MiB by RDMA",
		c, res.Took.Seconds(), registrations, bytes>>20)
}

// judge returns in one line what is wrong with a run, "" if nothing is.
func (c combination) judge(res stack.Result) string {
	says := c.program.says
	if says == "" {
		says = "data right"
	}
	moved := 0 // ranks
	for _, u := range res.Uses {
		if u.Regions > 0 && u.Requests > 0 && (u.Large > 0 || c.program.small) {
			moved++
		}
	}
	switch {
	case res.Late:
		return fmt.Sprintf("not over after %.0f s", res.Took.Seconds())
	case res.Status != 0:
		return fmt.Sprintf("status %d", res.Status)
	case !strings.Contains(res.Output, says):
		return fmt.Sprintf("it does not say %q", says)
	case strings.Contains(res.Output, "running without Pinwheel"):
		return "it ran without Pinwheel"
	case moved < c.ranks && c.program.small:
		return fmt.Sprintf("%d of %d ranks moved anything over the device", moved, c.ranks)
	case moved < c.ranks:
		return fmt.Sprintf("%d of %d ranks moved large buffers over the device", moved, c.ranks)
	}
	return ""
}

// selfCheck runs a job over shared memory on each stack, with data that is
// right. It must be found to have failed.
func (b bench) selfCheck(d stack.Device, stacks []stack.Stack) error {
	halo, err := programNamed("halo")
	if err != nil {
		return err
	}
	for _, s := range stacks {
		c := combination{program: halo, policy: "pinwheel", stack: s, ranks: 2}
		if err := b.compile([]combination{c}); err != nil {
			return err
		}
		j := b.job(d, c)
		j.Environ = append(j.Environ, s.OverSharedMemory()...)
		had := lookBefore()
		res, err := j.Run(b.Limit)
		if err != nil {
			return err
		}
		had.left()
		if why, want := c.judge(res), "0 of 2 ranks moved large buffers over the device"; why != want {
			return fmt.Errorf("%s over shared memory: the check says %q, not %q\n%s", s.Name, why, want, indented(res.Output))
		}
		say("ok       %s over shared memory: is found out", s.Name)
	}
	return nil
}

// say prints a line to standard output.
func say(format string, args ...any) { fmt.Fprintf(os.Stdout, format+"\n", args...) }

// indented is the end of what a job printed.
func indented(output string) string {
	lines := strings.Split(strings.TrimRight(output, "\n"), "\n")
	return "\t" + strings.Join(lines[max(0, len(lines)-20):], "\n\t")
}
