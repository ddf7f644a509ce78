package main

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"time"

	"pinwheel/comm/vmmc"
	"pinwheel/comm/vmmc/broker"
	"pinwheel/internal/signals"
	"pinwheel/internal/tools/command"
)

type nodeCmd struct {
	Serve   nodeServeCmd   `cmd:"" default:"withargs" help:"Give processes of this machine names, by which others import what they export. So does pinwheel node."`
	Exports nodeExportsCmd `cmd:"" help:"List what processes with such names export."`
}

type nodeServeCmd struct {
	Socket   string `placeholder:"PATH" help:"Where to listen. Default: pinwheel-node in $$XDG_RUNTIME_DIR; with --all-users /run/pinwheel/node."`
	AllUsers bool   `help:"Serve the processes of all users. Default: only yours."`
	Listen   string `placeholder:"HOST:PORT" help:"Where brokers of other nodes find this one, over TCP. Default: they don't."`
	Name     string `placeholder:"NAME" help:"What this node is called if no certificate says it. Default: its host name."`
	//lint:ignore SA5008 kong takes each set
	Identity identityFlags `embed:"" set:"all=all nodes" set:"self=node" set:"others=other nodes"`
}

func (nodeServeCmd) Help() string {
	return `Programs that use virtual memory-mapped communication (Go package vmmc) find each other through it: one listens
at node:NAME, others import from node:NAME, also before the first one runs. The two get a socket between them. If the
broker ends, they go on; it has their names again when it is back.

Names belong to users: node:UID/NAME is that of another one, whose program must let you in. A process can't take the
name of a living one.

Brokers of different nodes know each other by certificates, or by a token. node:NAME@HOST:PORT is a name at the broker
that listens there. Keys stay with the brokers: programs get one for each connection, which goes from program to program
through that port. A program must let in other nodes, and brokers believe each other which user a program belongs to.
Whoever may use a broker that knows other nodes may have it connect to any HOST:PORT.

systemd may open the socket: see the units in cmd/pinwheel/systemd, for all users of a machine and for one. They serve
one node.

Examples:
  pinwheel node
  pinwheel node --all-users
  pinwheel node --listen node17:7000 --token-file ~/token
  systemctl --user enable --now pinwheel-node.socket`
}

func (c *nodeServeCmd) Run(e *command.Env) error {
	o := broker.Options{AllUsers: c.AllUsers, Warn: func(m string) { e.Note("%s", m) }}
	if err := c.remote(&o); err != nil {
		return err
	}
	ctx, end := signals.Context(context.Background())
	defer end()
	l, err := c.listen()
	if err != nil {
		return err
	}
	if c.Listen != "" {
		if o.Remote.Listener, err = net.Listen("tcp", c.Listen); err != nil {
			return errors.Join(err, l.Close())
		}
	}
	e.Note("serves at %s", l.Addr())
	if c.Listen != "" {
		e.Note("other nodes find it at %s", o.Remote.Listener.Addr())
	}
	return broker.Serve(ctx, l, o)
}

// remote says how the broker talks to those of other nodes.
func (c *nodeServeCmd) remote(o *broker.Options) (err error) {
	if err := c.Identity.check(); err != nil {
		return err
	}
	if !c.Identity.given() {
		if c.Listen != "" {
			return command.Usagef("--listen needs --token-file, or --certificate, --key and --authorities")
		}
		return nil
	}
	r := &broker.Remote{Name: c.Name}
	if r.Name == "" {
		r.Name, err = os.Hostname()
	}
	if err == nil && c.Identity.TokenFile != "" {
		r.Token, err = vmmc.ReadToken(c.Identity.TokenFile)
	} else if err == nil {
		f := &c.Identity
		r.Certificate, r.Authorities, err = vmmc.ReadCertificate(f.Certificate, f.Key, f.Authorities)
	}
	o.Remote = r
	return err
}

func (c *nodeServeCmd) listen() (net.Listener, error) {
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
	return `Lists the exports of your processes that have names at the broker; for root, of all users. RECEIVED are the bytes
that came through sockets: nobody but the importer counts what it writes into shared memory. QUEUED are notifications that
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
