package main

import (
	"context"
	"errors"

	"pinwheel/internal/signals"
	"pinwheel/internal/tools/command"
	"pinwheel/vmwatch"
	"pinwheel/vmwatch/watchd"
)

type watchdCmd struct {
	Socket  string `placeholder:"PATH" default:"/run/pinwheel/watch.sock" help:"Where to listen. Processes look there if PINWHEEL_WATCHD doesn't name another. Default: ${default}."`
	Watch   string `default:"auto" enum:"auto,fentry,tps,tp" help:"How to watch: ${enum}. Default: the first that this kernel has."`
	PerUser int    `placeholder:"N" default:"256" help:"Most processes of one user that are watched at a time. Default: ${default}."`
	Total   int    `placeholder:"N" default:"1024" help:"Most processes of all users. Each takes 385 KiB of kernel memory. Default, and most: ${default}."`
}

func (watchdCmd) Help() string {
	return `Watches the memory mappings of other processes for them, by BPF programs. Only the privileged may load such programs; other
processes have userfaultfd, which on Linux 6.13 and later makes them register most buffers again for each use, or nothing. With
this service they are as well off as root.

It needs CAP_BPF and CAP_PERFMON, and tracefs (/sys/kernel/tracing) if the kernel has no fentry. Any process may connect; it learns
of the mappings of no other one. Whom the service has accepted goes on if it ends, or is killed, and needs no restart with it.
While the service runs, every system call of the node takes a little more where the kernel has no fentry: some 13 ns under tps, and
up to 600 ns under tp.

Examples:
  systemctl enable --now pinwheel-watchd    # once, as an administrator
  pinwheel watchd --socket /tmp/watch.sock  # by hand, as root
  PINWHEEL_WATCHD=/tmp/watch.sock pinwheel doctor`
}

func (c *watchdCmd) Run(e *command.Env) error {
	if c.PerUser < 1 || c.Total < 1 || c.Total > vmwatch.MaxLogs {
		return command.Usagef("--per-user is at least 1, and --total is 1 to %d", vmwatch.MaxLogs)
	}
	ctx, end := signals.Context(context.Background())
	defer end()
	s, err := vmwatch.OpenService(vmwatch.ServiceOptions{Mechanism: c.Watch, PerUser: c.PerUser, Total: c.Total})
	if err != nil {
		return err
	}
	l, err := watchd.Listen(c.Socket)
	if err != nil {
		return errors.Join(err, s.Close())
	}
	e.Note("watches by %v, and serves at %s", s.Mechanism(), c.Socket)
	return errors.Join(watchd.Serve(ctx, l, s, func(m string) { e.Note("%s", m) }), s.Close())
}
