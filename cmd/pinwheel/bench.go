package main

import (
	"context"
	"time"

	"pinwheel/internal/command"
	"pinwheel/internal/signals"
	"pinwheel/internal/vmmcbench"
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
in one process: CPU us is the processor time of both, with that of the kernel. Nothing else should run meanwhile.

Examples:
  pinwheel bench vmmc
  pinwheel bench vmmc --rounds 9 --claims
  pinwheel bench vmmc --json | jq -c '.claims[]'`
}

func (c *benchVMMCCmd) Run(e *command.Env) error {
	o := vmmcbench.Options{Time: c.Time, Rounds: c.Rounds}
	steps, err := vmmcbench.Steps(o)
	if err != nil {
		return command.Usagef("--time and --rounds: %w", err)
	}
	bar := newBar(e, int64(steps), "vmmc", true)
	o.Step = func() { _ = bar.Add(1) }
	ctx, end := signals.Context(context.Background())
	defer end()
	all, err := vmmcbench.Run(ctx, o)
	_ = bar.Finish()
	if err != nil {
		return err
	}
	if c.JSON {
		err = vmmcbench.WriteJSON(e.Stdout, all)
	} else {
		err = vmmcbench.WriteTables(e.Stdout, all)
	}
	for _, claim := range vmmcbench.Claims(all) {
		if c.Claims && !claim.Holds() {
			e.Note("%s: %.3g, not %s", claim.What, claim.Times, claim.Bound())
			e.Fail()
		}
	}
	return err
}
