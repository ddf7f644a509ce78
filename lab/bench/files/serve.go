package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"pinwheel/comm/files"
	"pinwheel/comm/files/pipe"
	"pinwheel/comm/vmmc"
)

// served is a server in this process, and its clients in others.
type served struct {
	*files.Server
	node    *vmmc.Node
	root    *os.Root
	ended   chan error
	address string
	flags   []string // of its clients
}

// serve serves a tree. A way is one of package files: ByRDMA, ByTLS or ByMemory.
func serve(t *tree, by string, o files.ServerOptions) (s *served, err error) {
	n := tcpNode(serverName)
	s = &served{ended: make(chan error, 1)}
	switch by {
	case files.ByTLS:
		n.NoRDMA = true
		s.flags = []string{"--no-rdma"}
	case files.ByMemory:
		sockets := filepath.Join(t.dir, "sockets")
		if err := os.MkdirAll(sockets, 0o700); err != nil {
			return nil, err
		}
		n.Token, n.Listen = "", []string{"unix:" + sockets + "/server"}
		s.flags = []string{"--unix", sockets}
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.root, err = os.OpenRoot(t.dir); err != nil {
		return s, err
	}
	if s.node, err = vmmc.Open(n); err != nil {
		return s, err
	}
	s.address = s.node.Addresses()[0]
	o.Peers, o.Warn = vmmc.Permissions{Peers: []string{readerName}}, n.Warn
	server, err := files.NewServer(s.node, s.root, o)
	if err != nil {
		return s, err
	}
	s.Server = server
	go func() { s.ended <- server.Serve(context.Background()) }()
	return s, nil
}

func (s *served) close() (err error) {
	if s.Server != nil {
		err = errors.Join(s.Server.Close(), <-s.ended)
	}
	if s.node != nil {
		err = errors.Join(err, s.node.Close())
	}
	if s.root != nil {
		err = errors.Join(err, s.root.Close())
	}
	return err
}

// read has clients in another process read files.
func (s *served) read(ctx context.Context, names []string, flags ...string) ([]reading, error) {
	args := append([]string{"read", s.address}, names...)
	cmd := exec.CommandContext(ctx, "/proc/self/exe", append(append(args, s.flags...), flags...)...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("reading: %w: %s", err, errs.String())
	}
	var all []reading
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var r reading
		if err := d.Decode(&r); err != nil {
			break // that is the end
		}
		all = append(all, r)
	}
	if len(all) != len(names) {
		return nil, fmt.Errorf("reading: %d readings of %d files: %s", len(all), len(names), errs.String())
	}
	return all, nil
}

// secondSize is the size in bytes of the file that is got twice.
const secondSize = 16 * mib

// second gets a file twice. The points have what was registered for each. At once means that one client gets both;
// else a second client begins after the first has ended.
func second(ctx context.Context, b *bench, atOnce bool) (points []point, err error) {
	if err := b.tree.have(secondSize, 0); err != nil {
		return nil, err
	}
	s, err := serve(b.tree, files.ByRDMA, files.ServerOptions{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	gets := [][]string{{name(secondSize, 0)}, {name(secondSize, 0)}}
	if atOnce {
		gets = [][]string{slices.Concat(gets...)}
	}
	for _, names := range gets {
		before := s.Stats()
		all, err := s.read(ctx, names)
		if err != nil {
			return nil, err
		}
		after := s.Stats()
		for _, r := range all {
			if r.Error != "" || r.Way != files.ByRDMA {
				return nil, fmt.Errorf("a get by %s: %s", r.Way, r.Error)
			}
			points = append(points, point{
				X: int64(len(points) + 1), N: 1, Seconds: r.Seconds, Way: r.Way,
				Registrations: after.Registrations - before.Registrations, Hits: after.Hits - before.Hits,
				PeakBytes: after.PeakBytes, LeftBytes: after.PinnedBytes,
			})
		}
	}
	if atOnce { // both were counted together: the first has registered each chunk
		first := secondSize / pipe.Auto.Shape.ChunkBytes
		points[0].Registrations, points[1].Registrations = first, points[1].Registrations-first
		points[0].Hits = 0
	}
	return points, nil
}

// Many clients that share one budget.
const (
	manyClients = 64
	manyBudget  = 64 * mib
	manySize    = 8 * mib // bytes of the file that each gets again and again
	manyWindow  = 4 * mib
)

// many has many clients get files for a while.
func many(ctx context.Context, b *bench, by string) (points []point, err error) {
	if err := b.tree.have(manySize, 0); err != nil {
		return nil, err
	}
	s, err := serve(b.tree, by, files.ServerOptions{BudgetBytes: manyBudget, MaxClients: manyClients})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	r, err := s.read(ctx, []string{name(manySize, 0)}, "--clients", fmt.Sprint(manyClients), "--window", fmt.Sprint(manyWindow),
		"--time", b.Clients.String())
	if err != nil {
		return nil, err
	}
	st := s.Stats()
	p := point{
		X: manyClients, N: int(r[0].Gets), Seconds: r[0].Seconds, Clients: r[0].Bytes, Errors: r[0].Errors + st.Errors,
		Way: r[0].Way, Registrations: st.Registrations, Hits: st.Hits, Refused: st.Refused, CopiedBytes: st.BytesCopied,
		PeakBytes: st.PeakBytes, MostBytes: manyBudget,
	}
	if r[0].Error != "" {
		say("%s: %s", by, r[0].Error)
	}
	if r[0].Way != by {
		return nil, fmt.Errorf("the bytes went by %s, not by %s", r[0].Way, by)
	}
	return []point{p}, nil
}
