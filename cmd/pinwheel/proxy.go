package main

import (
	"context"

	"pinwheel/comm/proxy"
	"pinwheel/internal/signals"
	"pinwheel/internal/tools/command"
)

type proxyCmd struct {
	Listen  string        `arg:"" help:"Where programs connect: tcp:HOST:PORT or unix:PATH. Or where the other proxy does: vmmc:tcp:HOST:PORT or vmmc:unix:PATH."`
	Target  string        `arg:"" help:"Where their connections go: the other proxy, or a program, in the same way."`
	Service uint32        `default:"1" placeholder:"N" help:"Number that two proxies agree on, for several pairs at one address. Default: 1."`
	From    string        `placeholder:"ADDRESS" help:"With a target of vmmc: address at which that reaches this proxy, by a name in its certificate if it has one. Default: chosen, on this machine."`
	Bind    string        `placeholder:"ADDRESS" help:"Where this proxy listens for that, if not there: behind a router that translates addresses, say. Default: as in --from."`
	Name    string        `placeholder:"NAME" help:"What this proxy calls itself if no certificate says it. Default: proxy."`
	Peer    command.Names `placeholder:"NAME,..." help:"Name of a proxy that this one talks to. Default: all of this user on this machine, or with a token those called proxy."`
	//lint:ignore SA5008 kong takes each set
	Identity identityFlags `embed:"" set:"all=both proxies" set:"self=proxy" set:"others=peers"`
}

func (proxyCmd) Help() string {
	return `Two proxies stand between a client and a server that know only sockets: the client connects to the first, and the
second connects to the server. Between them goes virtual memory-mapped communication: shared memory if they meet at a
Unix socket, TLS 1.3 otherwise. On one machine, for one user, they need no identity. Each proxy goes on until a signal
comes. The one that connects to the other fails if that is not there: start that first.

Examples:
  pinwheel proxy vmmc:unix:/run/user/1000/web tcp:127.0.0.1:80
  pinwheel proxy tcp:127.0.0.1:8080 vmmc:unix:/run/user/1000/web
  pinwheel proxy --token-file ~/token vmmc:tcp:server:7000 tcp:127.0.0.1:80
  pinwheel proxy --token-file ~/token --from tcp:client:7000 tcp:127.0.0.1:8080 vmmc:tcp:server:7000`
}

func (c *proxyCmd) Run(e *command.Env) error {
	o := proxy.Options{
		Listen: c.Listen, Target: c.Target, Service: c.Service, End: c.Identity.end(),
		Warn: func(m string) { e.Note("%s", m) },
	}
	o.From, o.Bind, o.Name, o.Peers = c.From, c.Bind, c.Name, c.Peer
	if err := o.Check(); err != nil {
		return command.AsUsage(err)
	}
	ctx, end := signals.Context(context.Background())
	defer end()
	p, err := proxy.Open(o)
	if err != nil {
		return err
	}
	return p.Serve(ctx)
}
