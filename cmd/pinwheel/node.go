package main

import (
	"context"
	"encoding/json"
	"net"
	"time"

	"pinwheel/internal/command"
	"pinwheel/internal/signals"
	"pinwheel/vmmc/broker"
)

type nodeCmd struct {
	Serve   nodeServeCmd   `cmd:"" default:"withargs" help:"Give processes of this machine names, by which others import what they export. So does pinwheel node."`
	Exports nodeExportsCmd `cmd:"" help:"List what processes with such names export."`
}

type nodeServeCmd struct {
	Socket   string `placeholder:"PATH" help:"Where to listen. Default: pinwheel-node in $$XDG_RUNTIME_DIR; with --all-users /run/pinwheel/node."`
	AllUsers bool   `help:"Serve the processes of all users. Default: only yours."`
}

func (nodeServeCmd) Help() string {
	return `Programs that use virtual memory-mapped communication (Go package vmmc) find each other through it: one listens at
node:NAME, others import from node:NAME, also before the first one runs. The two get a socket between them. If the
broker ends, they go on; it has their names again when it is back.

Names belong to users: node:UID/NAME is that of another one, whose program must let you in. A process can't take the
name of a living one.

systemd may open the socket: see the units in cmd/pinwheel/systemd, for all users of a machine and for one.

Examples:
  pinwheel node
  pinwheel node --all-users
  systemctl --user enable --now pinwheel-node.socket`
}

func (c *nodeServeCmd) Run(e *command.Env) error {
	ctx, end := signals.Context(context.Background())
	defer end()
	l, err := c.listen()
	if err != nil {
		return err
	}
	e.Note("serves at %s", l.Addr())
	return broker.Serve(ctx, l, broker.Options{AllUsers: c.AllUsers, Warn: func(m string) { e.Note("%s", m) }})
}

func (c *nodeServeCmd) listen() (*net.UnixListener, error) {
	if l, err := broker.Activated(); l != nil || err != nil {
		return l, err
	}
	if c.Socket == "" {
		var err error
		if c.Socket, err = broker.ServerSocket(c.AllUsers); err != nil {
			return nil, err
		}
	}
	return broker.Listen(c.Socket, c.AllUsers)
}

type nodeExportsCmd struct {
	Socket string `placeholder:"PATH" help:"Where the broker listens. Default: where programs look for it."`
	JSON   bool   `name:"json" help:"Print one JSON object, with imports and counters."`
}

func (nodeExportsCmd) Help() string {
	return `Lists the exports of your processes that have names at the broker; for root, of all users. RECEIVED are the bytes that
came through sockets: nobody but the importer counts what it writes into shared memory. QUEUED are notifications that
the exporter has not taken.

Examples:
  pinwheel node exports
  pinwheel node exports --json | jq '.processes[].exports[]'`
}

func (c *nodeExportsCmd) Run(e *command.Env) error {
	if c.Socket == "" {
		c.Socket = broker.Socket()
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	all, err := broker.List(ctx, c.Socket)
	switch {
	case err != nil:
		return err
	case c.JSON:
		return json.NewEncoder(e.Stdout).Encode(struct {
			Processes []broker.Process `json:"processes"`
		}{all})
	}
	return broker.WriteTable(e.Stdout, all)
}
