package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"

	"pinwheel/comm/files"
	"pinwheel/comm/files/pipe"
)

// getsTogether are the curves of gets of hot files through a server, from opening to closing.
func getsTogether() []row {
	names, strategies := repeatedStrategies()
	t := &together{names: names, begin: func(ctx context.Context, b *bench) (comparison, error) {
		return beginGets(ctx, b, strategies)
	}}
	return t.rows(wholeGets)
}

// gets is the comparison of servers, each with a client.
type gets struct {
	tree    *tree
	servers []*served
	clients []*getter
}

func beginGets(ctx context.Context, b *bench, strategies []pipe.Strategy) (g *gets, err error) {
	g = &gets{tree: b.tree}
	defer func() {
		if err != nil {
			err = errors.Join(err, g.close())
		}
	}()
	for _, strategy := range strategies {
		s, err := serve(b.tree, files.ByRDMA, files.ServerOptions{Strategy: strategy})
		if err != nil {
			return g, err
		}
		g.servers = append(g.servers, s)
		c, err := s.getter(ctx, b.comparedSlice()/turns)
		if err != nil {
			return g, err
		}
		g.clients = append(g.clients, c)
	}
	return g, nil
}

func (g *gets) at(n int64) (all []candidate, err error) {
	for i, c := range g.clients {
		if err := g.tree.have(n, copyOf(n, i)); err != nil {
			return nil, err
		}
		all = append(all, &getting{client: c, file: name(n, copyOf(n, i)), point: point{X: n}})
	}
	return all, nil
}

func (g *gets) close() (err error) {
	for _, c := range g.clients {
		err = errors.Join(err, c.close())
	}
	for _, s := range g.servers {
		err = errors.Join(err, s.close())
	}
	return err
}

// getter is the process of a readCmd that reads what it is told to.
type getter struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	out   *json.Decoder
	errs  bytes.Buffer
}

// getter starts a client, which reads each file for a while.
func (s *served) getter(ctx context.Context, each time.Duration) (*getter, error) {
	args := append([]string{"read", s.address, "--time", each.String()}, s.flags...)
	g := &getter{cmd: exec.CommandContext(ctx, "/proc/self/exe", args...)}
	g.cmd.Stderr = &g.errs
	var err error
	if g.stdin, err = g.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := g.cmd.StdoutPipe()
	if err == nil {
		err = g.cmd.Start()
	}
	if err != nil {
		return nil, errors.Join(err, g.stdin.Close())
	}
	g.out = json.NewDecoder(stdout)
	return g, nil
}

// get has the client read a file.
func (g *getter) get(name string) (r reading, err error) {
	if _, err = fmt.Fprintln(g.stdin, name); err == nil {
		err = g.out.Decode(&r)
	}
	if err == nil && r.Error != "" {
		err = errors.New(r.Error)
	}
	return r, err
}

// close ends the process, which has said what went wrong.
func (g *getter) close() error {
	err := errors.Join(g.stdin.Close(), g.cmd.Wait())
	if err != nil {
		err = fmt.Errorf("reading: %w: %s", err, g.errs.String())
	}
	return err
}

// getting are the gets of one file by one client.
type getting struct {
	client *getter
	file   string
	point  point
	wall   time.Duration
}

// turn has the client get the file once, so that all is as that leaves it, and then for the time that it was started
// with, which is measured.
func (g *getting) turn(context.Context, time.Duration) error {
	r, err := g.client.get(g.file)
	if err == nil && g.point.X > files.SmallBytes && r.Way != files.ByRDMA {
		err = fmt.Errorf("%d bytes by %s", g.point.X, r.Way)
	}
	g.point.N += int(r.Gets)
	g.point.Way = r.Way
	g.wall += time.Duration(r.Seconds * float64(time.Second))
	return err
}

func (g *getting) took() time.Duration { return g.wall }

func (g *getting) result() (point, error) {
	p := g.point
	p.each(g.wall, 0)
	return p, nil
}

func (g *getting) close() error { return nil } // the client reads further files
