package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"

	"pinwheel/comm/files"
	"pinwheel/comm/files/pipe"
	"pinwheel/comm/peer"
	"pinwheel/comm/vmmc"
	"pinwheel/internal/signals"
	"pinwheel/internal/tools/command"
)

type serveCmd struct {
	Dir            string        `arg:"" help:"Directory that is served, with all that is in it."`
	Listen         []string      `required:"" sep:"none" placeholder:"ADDRESS" help:"Where clients find it: HOST:PORT, unix:SOCKET, or node:NAME for a name at the broker of this machine. It may be given several times."`
	AllowWrite     bool          `help:"Let clients put files and make directories. Default: they only read."`
	Strategy       string        `enum:"auto,static,dynamic,pipelined,sendfile" default:"auto" help:"How files become registered memory, over RDMA: ${enum}. Default: auto."`
	Chunk          command.Size  `placeholder:"SIZE" help:"Bytes of one registration and one message. Default: that of the strategy."`
	Depth          int           `placeholder:"N" help:"Chunks of a transfer that are under way at a time. Default: that of the strategy."`
	Budget         *command.Size `placeholder:"SIZE" help:"The most that is registered for what all clients read; as much again may be for what they send. 1M or more. Default: 64M, or half of what may be pinned."`
	Transport      transport     `enum:"auto,rdma,tcp,shm" default:"auto" help:"How file contents go: ${enum}. What can't go by the one that is named fails, also for clients that don't insist on it. Files of 64K and less go with requests and answers, over TCP if RDMA is down. Default: auto, the best that both ends have at the time."`
	TrustedNetwork bool          `help:"Let clients that want it have file contents over TCP without encryption: sendfile(2) is faster than TLS."`
	DataListen     string        `placeholder:"HOST:PORT" help:"Where such contents go out. Default: a port that the kernel chooses."`
	MaxClients     int           `default:"256" placeholder:"N" help:"Clients that may be connected at a time. Default: 256."`
	JSON           bool          `name:"json" help:"Print a JSON object on a line when it serves, and one with its counters when the signal comes."`
	End            endFlags      `embed:""`
}

func (serveCmd) Help() string {
	return `Serves the files of a directory to pinwheel get, put and ls, and to Go programs with package files. Links that
lead out of the directory are refused. It goes on until a signal comes.

Over a Unix socket, and on a loopback address, clients are those of this user, and need no identity. Elsewhere both
ends need a token or certificates. What goes over TCP is encrypted by TLS 1.3; file contents that go by RDMA, or by
--trusted-network, are not. With --transport rdma, clients that have no RDMA are refused, and what is put goes by RDMA,
too: this machine waits some seconds for RDMA that is down, and then fails what was asked for. Links between this server
and its clients go both ways: see --from of pinwheel get.

systemd may run it: see cmd/pinwheel/systemd.

Examples:
  pinwheel serve ~/data --listen unix:/run/user/1000/files
  pinwheel serve ~/data --listen 127.0.0.1:7400 --allow-write
  pinwheel serve /srv/models --listen 0.0.0.0:7400 --token-file ~/token
  pinwheel serve /srv/models --listen 0.0.0.0:7400 --token-file ~/token --strategy sendfile --chunk 1M --depth 6`
}

func (c *serveCmd) Run(e *command.Env) error {
	if err := c.check(); err != nil {
		return err
	}
	node, peers, err := c.node()
	if err != nil {
		return err
	}
	node.Warn = func(m string) { e.Note("%s", m) }
	root, err := os.OpenRoot(c.Dir + "/") // with the slash it fails for a FIFO, and does not wait for who writes there
	if err != nil {
		return fmt.Errorf("%s: %w", c.Dir, errors.Unwrap(err))
	}
	defer root.Close()
	ctx, end := signals.Context(context.Background())
	defer end()
	n, err := vmmc.Open(node)
	if err != nil {
		return err
	}
	defer n.Close() // nothing is sent any more
	s, err := files.NewServer(n, root, files.ServerOptions{
		Peers: peers, AllowWrite: c.AllowWrite, Strategy: c.strategy(), BudgetBytes: c.budget(),
		MaxClients: c.MaxClients, TrustedNetwork: c.TrustedNetwork, RequireRDMA: c.Transport == "rdma",
		DataListen: c.DataListen, Warn: node.Warn,
	})
	if err != nil {
		return err
	}
	if err := c.began(e, n.Addresses()); err != nil {
		return errors.Join(err, s.Close())
	}
	err = s.Serve(ctx)
	if c.JSON {
		err = errors.Join(err, json.NewEncoder(e.Stdout).Encode(s.Stats()))
	}
	return err
}

// minBudget has room for a few transfers with small chunks.
const minBudget = 1 << 20

// budget is 0 if the server is to choose.
func (c *serveCmd) budget() int64 {
	if c.Budget == nil {
		return 0
	}
	return int64(*c.Budget)
}

// check finds options that make no sense.
func (c *serveCmd) check() error {
	switch {
	case c.Chunk < 0 || c.Chunk > 0 && c.Chunk < 4<<10 || c.Chunk > 1<<30:
		return command.Usagef("--chunk must be from 4K to 1G")
	case c.Depth < 0 || c.Depth > 128:
		return command.Usagef("--depth must be from 1 to 128")
	case c.Budget != nil && *c.Budget < minBudget:
		return command.Usagef("--budget must be 1M or more")
	case c.MaxClients < 1:
		return command.Usagef("--max-clients must be 1 or more")
	case c.DataListen != "" && !c.TrustedNetwork:
		return command.Usagef("--data-listen goes with --trusted-network")
	case c.DataListen != "":
		if _, port, err := net.SplitHostPort(c.DataListen); err != nil || port == "" {
			return command.Usagef("--data-listen %q: write HOST:PORT", c.DataListen)
		}
	}
	return nil
}

// strategy returns the numbers of transfers.
func (c *serveCmd) strategy() pipe.Strategy {
	all := pipe.Strategies()
	s := all[slices.IndexFunc(all, func(s pipe.Strategy) bool { return s.Name == c.Strategy })]
	if c.Chunk > 0 {
		s.Shape.ChunkBytes, s.Adapts = int64(c.Chunk), false
	}
	if c.Depth > 0 {
		s.Shape.Depth, s.Adapts = c.Depth, false
		s.Shape.Ahead = min(s.Shape.Ahead, c.Depth)
	}
	return s
}

// node returns who the server is, whom it lets in, and where it listens.
func (c *serveCmd) node() (n vmmc.Options, peers vmmc.Permissions, err error) {
	end := c.End.end()
	if err := end.Check(""); err != nil {
		return n, peers, command.AsUsage(err)
	}
	var listen []string
	for _, a := range c.Listen {
		if !slices.ContainsFunc([]string{"tcp:", "unix:", "node:"}, func(p string) bool { return strings.HasPrefix(a, p) }) {
			a = "tcp:" + a
		}
		if err := peer.CheckAddress(a); err != nil {
			return n, peers, command.Usagef("--listen: %w", err)
		}
		if err := c.Transport.check(a, c.TrustedNetwork); err != nil {
			return n, peers, err
		}
		listen = append(listen, a)
	}
	if n, peers, err = end.Identity(bufferID); err != nil {
		return n, peers, err
	}
	n.Listen = listen
	n.MaxPinned = uint64(cmp.Or(c.budget(), files.DefaultBudget)) // of what clients send
	return n, peers, c.Transport.apply(&n)
}

// began says that clients may come.
func (c *serveCmd) began(e *command.Env, addresses []string) error {
	if !c.JSON {
		e.Note("serves %s at %s", c.Dir, strings.Join(addresses, ", "))
		return nil
	}
	return json.NewEncoder(e.Stdout).Encode(struct {
		Dir       string   `json:"dir"`
		Addresses []string `json:"addresses"`
		Writable  bool     `json:"writable"`
	}{c.Dir, addresses, c.AllowWrite})
}
