package main

import (
	"context"
	"errors"
	"os"

	"pinwheel/comm/files/filesbench"
	"pinwheel/internal/signals"
	"pinwheel/internal/tools/command"
)

type benchFilesCmd struct {
	JSON   bool         `name:"json" help:"Print one JSON object on a line."`
	Dir    string       `placeholder:"DIR" help:"Where files are made, from and to which they are copied. Default: where temporary files go."`
	Size   command.Size `default:"1G" placeholder:"SIZE" help:"Bytes of the large file. Default: 1G."`
	Files  int          `default:"10000" placeholder:"N" help:"Small files of the tree. Default: 10000."`
	Rounds int          `default:"5" placeholder:"N" help:"How often each way is measured; the median counts. Default: 5."`
	Claims bool         `help:"Fail unless this machine shows all that serving files claims. That needs nginx, curl and rsync."`
}

func (benchFilesCmd) Help() string {
	return `Copies a large file, and a tree of small ones, out of the page cache into files: by pinwheel serve and get over
shared memory, TCP, TLS, and RDMA with each strategy if there is a device; by plain sendfile(2), by nginx and curl, and
by rsync, where these are installed. It prints the processor time of both ends, and the time that the client ran: the
median of the rounds, and its 95 % interval (of fewer than six rounds, their extremes). Checksums are off, as nginx has
none. DIR should be on tmpfs, with room for twice the files. Nothing else should run meanwhile. It takes two minutes. A way
that fails has a line, and the others go on; what was measured before an interrupt is printed.

Examples:
  pinwheel bench files --dir /dev/shm
  pinwheel bench files --dir /dev/shm --rounds 9 --claims
  pinwheel bench files --json --size 64M | jq -c '.claims[]'`
}

func (c *benchFilesCmd) Run(e *command.Env) error {
	o := filesbench.Options{Dir: c.Dir, Bytes: int64(c.Size), Files: c.Files, Rounds: c.Rounds}
	err := o.EnsureDefaults()
	if err != nil {
		return command.Usagef("--size, --files and --rounds: %w", err)
	}
	if o.Command, err = os.Executable(); err != nil {
		return err
	}
	m := newMeasuring(e, filesbench.Steps(o), o.Rounds)
	o.Step, o.Failed = m.step, m.failed
	ctx, end := signals.Context(context.Background())
	defer end()
	all, err := filesbench.Run(ctx, o)
	m.stop()
	if len(all) == 0 {
		return err
	}
	if c.JSON {
		err = errors.Join(err, filesbench.WriteJSON(e.Stdout, all))
	} else {
		err = errors.Join(err, filesbench.WriteTables(e.Stdout, all))
	}
	if c.Claims {
		failOver(e, filesbench.Claims(all))
	}
	return err
}
