package main

import (
	"context"
	"errors"
	"time"

	"github.com/schollz/progressbar/v3"

	"pinwheel/comm/vmmc/vmmcbench"
	"pinwheel/internal/measure"
	"pinwheel/internal/signals"
	"pinwheel/internal/tools/command"
)

type benchCmd struct {
	VMMC  benchVMMCCmd  `cmd:"" name:"vmmc" help:"Measure virtual memory-mapped communication on this machine, beside sockets and net/rpc."`
	Files benchFilesCmd `cmd:"" help:"Measure how files are served on this machine, beside sendfile(2), nginx and rsync."`
}

type benchVMMCCmd struct {
	JSON   bool          `name:"json" help:"Print one JSON object on a line."`
	Time   time.Duration `default:"200ms" placeholder:"TIME" help:"How long each measurement takes, about. Default: 200ms."`
	Rounds int           `default:"3" placeholder:"N" help:"How often each is made; the median counts. Default: 3."`
	Claims bool          `help:"Fail if this machine does not show what virtual memory-mapped communication claims."`
}

func (benchVMMCCmd) Help() string {
	return `Prints the latency, the bandwidth and the processor time of messages over shared memory, Unix sockets and TCP, by
automatic and deliberate update and by sockets; of calls by vmmc/rpc and net/rpc; of pages by net/http over vmmc/stream
and sockets; and of flushes. With an RDMA device it measures messages by that, too, beside ib_write_lat, ib_write_bw and
ucx_perftest if they are installed, and for how many messages of a loop the export was registered in time. Both ends are
in one process: CPU us is the processor time of both, with that of the kernel. Nothing else should run meanwhile. It takes
half a minute, two with an RDMA device. One that fails has a line, and the others go on; what was measured before an interrupt is
printed.

Examples:
  pinwheel bench vmmc
  pinwheel bench vmmc --rounds 9 --claims
  pinwheel bench vmmc --json | jq -c '.claims[]'`
}

func (c *benchVMMCCmd) Run(e *command.Env) error {
	o := vmmcbench.Options{Time: c.Time, Rounds: c.Rounds}
	err := o.EnsureDefaults()
	if err != nil {
		return command.Usagef("--time and --rounds: %w", err)
	}
	m := newMeasuring(e, vmmcbench.Steps(o), o.Rounds)
	o.Step, o.Failed = m.step, m.failed
	ctx, end := signals.Context(context.Background())
	defer end()
	all, err := vmmcbench.Run(ctx, o)
	m.stop()
	if len(all) == 0 {
		return err
	}
	if c.JSON {
		err = errors.Join(err, vmmcbench.WriteJSON(e.Stdout, all))
	} else {
		err = errors.Join(err, vmmcbench.WriteTables(e.Stdout, all))
	}
	if c.Claims {
		failOver(e, vmmcbench.Claims(all))
	}
	return err
}

// failOver fails if a claim does not hold, with a line for each.
func failOver(e *command.Env, claims []measure.Claim) {
	for _, claim := range claims {
		if !claim.Holds() {
			e.Note("%s: %s, not %s", claim.What, claim.Got(), claim.Want())
			e.Fail()
		}
	}
}

// measuring shows how far a benchmark is: on a terminal what is measured now, and elsewhere a line for each round but the
// first.
type measuring struct {
	env           *command.Env
	bar           *progressbar.ProgressBar
	begin         time.Time
	steps, rounds int
	done          int
}

func newMeasuring(e *command.Env, steps, rounds int) *measuring {
	return &measuring{env: e, bar: newBar(e, int64(steps), "", true), begin: time.Now(), steps: steps, rounds: rounds}
}

// step is called before each measurement.
func (m *measuring) step(what string) {
	if each := m.steps / m.rounds; !m.env.Terminal && m.done > 0 && m.done%each == 0 {
		m.env.Note("round %d of %d, after %v", m.done/each+1, m.rounds, time.Since(m.begin).Round(time.Second))
	}
	m.done++
	m.bar.Describe(what)
	_ = m.bar.Add(1) // the terminal is no result
}

// failed complains of a measurement, above the bar. The others go on.
func (m *measuring) failed(err error) {
	_ = m.bar.Clear()
	m.env.Complain(err)
}

func (m *measuring) stop() { _ = m.bar.Finish() }
