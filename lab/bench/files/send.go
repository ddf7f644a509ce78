package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"pinwheel"
	"pinwheel/comm/files"
	"pinwheel/comm/files/pipe"
	"pinwheel/comm/vmmc"
	"pinwheel/internal/measure"
)

const (
	kib = 1 << 10
	mib = 1 << 20
	gib = 1 << 30
)

// budget is more than any transfer wants.
const budget = 4 * gib

// smallWindow is the size in bytes of the window for transfers that fit: a lease of the large one takes long.
const smallWindow = 64 * mib

// sender sends files to a receiver by RDMA.
type sender struct {
	node     *vmmc.Node
	receiver *receiver
	windows  []*vmmc.Import
	tree     *tree
	slice    time.Duration
}

// openSender starts a receiver with windows for files of so many bytes.
func openSender(ctx context.Context, t *tree, largest int64, slice time.Duration) (s *sender, err error) {
	s = &sender{tree: t, slice: slice}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	sizes := []int64{min(smallWindow, largest)}
	if largest > smallWindow {
		sizes = append(sizes, largest)
	}
	if s.receiver, err = startReceiver(ctx, sizes...); err != nil {
		return s, err
	}
	o := tcpNode(senderName)
	o.Manager.Policy = pinwheel.LeavePinned // for what files.Send does not register
	if s.node, err = vmmc.Open(o); err != nil {
		return s, err
	}
	for i := range sizes {
		w, err := s.node.Import(ctx, uint32(i+1), s.receiver.address)
		if err != nil {
			return s, err
		}
		s.windows = append(s.windows, w)
		if !w.AwaitRDMA(ctx) {
			return s, errors.New("no RDMA: make softverbs, and see pinwheel doctor")
		}
	}
	return s, nil
}

func (s *sender) close() error {
	var errs []error
	if s.node != nil {
		errs = append(errs, s.node.Close())
	}
	if s.receiver != nil {
		errs = append(errs, s.receiver.close())
	}
	return errors.Join(errs...)
}

// way is how a file is sent.
type way struct {
	strategy pipe.Strategy
	// cold has each transfer find its file unmapped: those of two files take turns, and only one stays mapped.
	cold bool
}

// sending sends a file of n bytes in one way, as often as it is its turn. It has something registered from its first
// turn until they have taken a slice.
type sending struct {
	sender    *sender
	n         int64
	way       way
	slice     time.Duration
	registrar *files.Registrar // nil before the first turn, and after the last
	from      openFiles
	dst       *vmmc.Import
	transfers int // also those that are not measured
	point     point
	wall, cpu time.Duration
}

// begin makes ready to send copies of the file of n bytes from one of them on.
func (s *sender) begin(n int64, w way, first int, slice time.Duration) (*sending, error) {
	copies := 1
	if w.cold {
		copies = 2
	}
	from, err := s.tree.open(n, first, copies)
	if err != nil {
		return nil, err
	}
	dst := s.windows[len(s.windows)-1]
	if n <= smallWindow {
		dst = s.windows[0]
	}
	return &sending{sender: s, n: n, way: w, slice: slice, from: from, dst: dst, point: point{X: n}}, nil
}

// open begins to register.
func (g *sending) open() (err error) {
	o := files.RegistrarOptions{Strategy: g.way.strategy, BudgetBytes: budget, Warn: func(m string) { say("%s", m) }}
	if g.way.cold {
		o.MaxMappings = 1
	}
	g.registrar, err = files.NewRegistrar(g.sender.node, o)
	return err
}

// turn sends once, so that all is as that leaves it, and twice at first: what is sent again is what auto keeps
// registered. Then it sends as often as the time allows, which is measured.
func (g *sending) turn(ctx context.Context, d time.Duration) error {
	unmeasured := 1
	if g.registrar == nil {
		if err := g.open(); err != nil {
			return err
		}
		unmeasured = 2 * len(g.from)
	}
	if !g.dst.AwaitRDMA(ctx) {
		return errors.New("RDMA is down")
	}
	for range unmeasured {
		if _, err := g.send(ctx); err != nil {
			return err
		}
	}
	busy, began := measure.ProcessorTime(), time.Now()
	for first := true; first || time.Since(began) < d; first = false {
		st, err := g.send(ctx)
		if err != nil {
			return err
		}
		g.point.add(&st)
	}
	g.wall += time.Since(began)
	g.cpu += measure.ProcessorTime() - busy
	if g.wall >= g.slice {
		return g.release()
	}
	return nil
}

// release ends what is registered: pages that one way has pinned cost the others less to pin.
func (g *sending) release() error {
	r := g.registrar
	if r == nil {
		return nil
	}
	g.registrar = nil
	st := r.Stats()
	g.point.PeakBytes, g.point.LeftBytes = st.PeakBytes, st.PinnedBytes
	return r.Close()
}

func (g *sending) send(ctx context.Context) (files.SendStats, error) {
	from := g.from[g.transfers%len(g.from)]
	g.transfers++
	st, err := files.Send(ctx, g.dst, 0, from, 0, g.n, files.SendOptions{Registrar: g.registrar})
	if err == nil && st.Way != files.ByRDMA {
		err = fmt.Errorf("%d bytes went by %s", g.n, st.Way)
	}
	return st, err
}

// add counts a transfer.
func (p *point) add(st *files.SendStats) {
	p.N++
	p.Registrations += st.Registrations
	p.Hits += st.Hits
	p.Refused += st.Refused
	p.CopiedBytes += st.CopiedBytes
	t := st.Times
	p.Stages += (t.Fetch + t.Register + t.Post + t.Release + t.Sending).Seconds()
	p.MostBytes = st.Shape.ChunkBytes * int64(st.Shape.Depth)
}

func (g *sending) took() time.Duration { return g.wall }

// result ends the turns.
func (g *sending) result() (point, error) {
	err := g.release()
	p := g.point
	p.each(g.wall, g.cpu)
	return p, err
}

func (g *sending) close() error {
	g.from.close()
	return g.release()
}

// measure sends a file of n bytes again and again.
func (s *sender) measure(ctx context.Context, n int64, w way) (p point, err error) {
	g, err := s.begin(n, w, 0, s.slice)
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	if err := g.turn(ctx, s.slice); err != nil {
		return p, err
	}
	return g.result()
}

// anonymous sends memory of this process that stays registered, in messages of some bytes of which some are under way,
// as programs of vmmc do: what the device can do at most.
func (s *sender) anonymous(ctx context.Context, n, message int64, depth int) (p point, err error) {
	memory, err := unix.Mmap(-1, 0, int(n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return p, err
	}
	defer unix.Munmap(memory) // it fails for nothing that we mapped; the node watches mappings
	for i := 0; i < len(memory); i += 4 * kib {
		memory[i] = 1
	}
	dst := s.windows[0]
	if !dst.AwaitRDMA(ctx) {
		return p, errors.New("RDMA is down")
	}
	if err := sendParts(ctx, dst, memory, message, depth); err != nil {
		return p, err
	}
	p = point{X: n}
	busy, began := measure.ProcessorTime(), time.Now()
	for p.N == 0 || time.Since(began) < s.slice {
		p.N++
		if err := sendParts(ctx, dst, memory, message, depth); err != nil {
			return p, err
		}
	}
	p.each(time.Since(began), measure.ProcessorTime()-busy)
	return p, nil
}

// sendParts sends memory in messages, of which some are under way.
func sendParts(ctx context.Context, dst *vmmc.Import, memory []byte, message int64, depth int) error {
	if depth == 1 {
		for at := int64(0); at < int64(len(memory)); at += message {
			part := memory[at:min(at+message, int64(len(memory)))]
			if err := dst.Send(ctx, part, uint64(at), vmmc.SendOptions{}); err != nil {
				return err
			}
		}
		return nil
	}
	p := dst.Progress()
	p.Poll = true
	var going []*vmmc.Op
	for at := int64(0); at < int64(len(memory)) || len(going) > 0; at += message {
		if len(going) == depth || at >= int64(len(memory)) {
			if err := await(ctx, going[0], p); err != nil {
				return err
			}
			going = going[1:]
		}
		if at < int64(len(memory)) {
			part := memory[at:min(at+message, int64(len(memory)))]
			op, err := dst.SendAsync(part, uint64(at), vmmc.SendOptions{Progress: p})
			if err != nil {
				return err
			}
			going = append(going, op)
		}
	}
	return nil
}

// await waits for a message, as package files does.
func await(ctx context.Context, op *vmmc.Op, p *vmmc.Progress) error {
	for {
		select {
		case <-op.Acked():
			return op.Err()
		default:
		}
		if !p.Sleep() {
			return op.Wait(ctx)
		}
	}
}

// each divides what N transfers took.
func (p *point) each(wall, cpu time.Duration) {
	n := float64(p.N)
	p.Seconds, p.CPU, p.Stages = wall.Seconds()/n, cpu.Seconds()/n, p.Stages/n
}
