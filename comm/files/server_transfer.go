package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"go.uber.org/atomic"

	"pinwheel"
	"pinwheel/comm/files/internal/turns"
	"pinwheel/comm/files/pipe"
	"pinwheel/comm/vmmc"
	"pinwheel/mem"
	"pinwheel/verbs"
)

// transfer sends a range of a file into an export, in as many parts as it takes: the way of the bytes may change in
// between.
type transfer struct {
	r        *Registrar
	client   turns.Client
	strategy pipe.Strategy
	file     *os.File
	stamp    stamp   // of when it was opened
	served   *served // which says whether it may have grown; nil: it may not
	from, n  int64
	dst      *vmmc.Import
	at       uint64
	several  *atomic.Bool // long transfers into dst have gone on at a time, as a reader has them; nil: it has none

	insists bool // it goes by RDMA, or fails
	down    outage
	noRDMA  bool // it failed
	noMap   bool // the file can't be mapped, or its pages can't be had
	stats   SendStats
}

// throughConnection is the shape of transfers that nothing is registered for.
var throughConnection = pipe.Shape{Source: pipe.Copy, ChunkBytes: 256 << 10, Depth: 4} // 256 KiB

const (
	// sharedPart is what is read into shared memory at a time: the end of the import waits for no more.
	sharedPart = 1 << 20 // 1 MiB
	// patience is how long a transfer waits for RDMA: the client has to register its window.
	patience = time.Second
	// crowded is the pause after too many messages were under way: nothing tells when there are fewer.
	crowded = time.Millisecond
)

// run sends everything. stats says how far it got.
func (t *transfer) run(ctx context.Context) error {
	if t.from < 0 || t.n < 0 {
		return fmt.Errorf("files: %d bytes from %d", t.n, t.from)
	}
	left := max(min(t.n, t.stamp.size-t.from), 0)
	err := t.unchanged()
	for err == nil && t.stats.Bytes < left {
		err = t.part(ctx, left-t.stats.Bytes)
	}
	if err == nil && left < t.n {
		err = io.ErrUnexpectedEOF
	}
	if err == nil || errors.Is(err, io.ErrUnexpectedEOF) {
		if changed := t.unchanged(); changed != nil {
			err = changed
		}
	}
	return err
}

// unchanged fails if the file is another one than at the beginning.
func (t *transfer) unchanged() error {
	s, err := stampOf(t.file)
	if err == nil && !s.same(t.stamp) && (t.served == nil || !t.served.is(s)) {
		err = ErrChanged
	}
	return err
}

// part sends some of the bytes that are left, by the best way that there is now. It fails if no other way helps.
func (t *transfer) part(ctx context.Context, n int64) error {
	way := ByTLS
	if !t.noRDMA {
		way = t.r.way(ctx, t.dst)
		t.noRDMA = way == ByTLS
	}
	if t.insists && way != ByRDMA {
		t.noRDMA = false
		return t.down.wait(ctx)
	}
	t.stats.Way = way
	ask := turns.Ask{Cost: n, Counted: way != ByTLS, Registered: way == ByRDMA}
	var c choice
	shape := throughConnection
	if way == ByRDMA {
		c = t.choose(n)
		if c.mapping != nil {
			defer t.r.mappings.put(c.mapping)
		}
		shape = c.strategy.For(n, t.r.opt.BudgetBytes)
	}
	if way != ByMemory {
		ask.Want = min(t.r.use(shape), n+2*int64(mem.PageSize))
		ask.Least = min(pipe.Static.Shape.ChunkBytes+int64(mem.PageSize), ask.Want)
	}
	turn, err := t.r.await(ctx, t.client, ask)
	if err != nil {
		return err
	}
	defer t.r.over(turn)
	switch {
	case way == ByMemory:
		return t.fill(ctx, n)
	case turn.Bytes < ask.Want: // it registers
		shape = c.strategy.For(n, turn.Bytes-int64(shape.Depth*int(mem.PageSize)))
	}
	before := t.stats.Bytes
	err = t.pipe(ctx, shape, n, &c)
	if t.stats.Bytes > before && !t.noRDMA {
		t.down = outage{}
	}
	return err
}

// abreast reports whether a long transfer of n bytes has others of its client under way, or will have: those of a
// reader come one after the other. They fill the time that a pipe would.
func (t *transfer) abreast(n int64) bool {
	if !t.r.abreast || n < longRead {
		return false
	}
	now := t.r.of(t.client) > 0
	if t.several == nil {
		return now
	}
	if now {
		t.several.Store(true)
	}
	return t.several.Load()
}

// way returns how bytes go to an export at present. It waits for RDMA that is on its way.
func (r *Registrar) way(ctx context.Context, to *vmmc.Import) string {
	if to.Shared() {
		return ByMemory
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if r.provider != nil && to.AwaitRDMA(ctx) {
		return ByRDMA
	}
	return ByTLS
}

// choice is how a part goes by RDMA.
type choice struct {
	strategy pipe.Strategy
	mapping  *mapping // nil: all is copied
	kept     int64    // bytes of the file, from its beginning, whose registrations may stay
}

// leastKept is the size in bytes from which what is sent repeatedly is registered: less is copied as fast.
const leastKept = 32 << 10 // 32 KiB

// single is a long read as one chunk.
var single = pipe.Shape{Source: pipe.Map, ChunkBytes: longRead, Depth: 1}

// choose decides how n bytes go by RDMA: less than CopyBelow is copied, unless it is registered already, or sent again
// where registrations stay.
func (t *transfer) choose(n int64) (c choice) {
	s := t.strategy
	if t.noMap || s.Shape.Source != pipe.Map {
		if c.strategy = s; t.noMap {
			c.strategy = pipe.Static
		}
		return c
	}
	c.kept = t.r.keeps(t.stamp.size)
	from, again := t.from+t.stats.Bytes, false
	if s.Adapts {
		again = t.r.mappings.again(sentRange{t.stamp, from})
		if !t.r.mappings.worth(t.stamp, again) {
			c.kept = 0
		}
	}
	stays := from+n <= c.kept
	hot := again && stays
	c.strategy = s
	c.strategy.CopyBelow = 0
	if n < s.CopyBelow && (!hot || n < leastKept) {
		if stays {
			c.mapping = t.r.mappings.find(t.stamp) // of a file that is mapped, most is registered
		}
		if c.mapping == nil {
			c.strategy = pipe.Static
		}
		return c
	}
	if !hot && s.Adapts && t.abreast(n) { // what is hot was registered in other chunks
		c.strategy.Shape, c.strategy.Adapts = single, false
	}
	var err error
	if c.mapping, err = t.r.mappings.get(t.file, t.stamp); err != nil { // no mmap(2), or too little address space
		t.noMap, c = true, choice{strategy: pipe.Static}
	}
	return c
}

// fill reads into memory that the client shares. Nothing is registered for that, and nothing is copied twice.
func (t *transfer) fill(ctx context.Context, n int64) error {
	began := time.Now()
	defer func() { t.stats.Times.Wall += time.Since(began) }()
	for end := t.stats.Bytes + n; t.stats.Bytes < end; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		part := min(end-t.stats.Bytes, sharedPart)
		done, err := t.dst.Fill(t.at+uint64(t.stats.Bytes), uint64(part), func(b []byte) (int, error) {
			return t.file.ReadAt(b, t.from+t.stats.Bytes)
		})
		t.stats.Bytes += int64(done)
		if int64(done) < part {
			return short(err)
		}
	}
	return nil
}

// pipe sends through the ring, or out of the mapping. It fails if nothing else is worth a try.
func (t *transfer) pipe(ctx context.Context, s pipe.Shape, n int64, c *choice) error {
	p, err := pipe.New(n, s)
	if err != nil {
		return err
	}
	done := t.stats.Bytes
	d := &device{
		r: t.r, file: t.file, from: t.from + done, dst: t.dst, at: t.at + uint64(done), mapping: c.mapping, kept: c.kept,
		insists: t.insists,
	}
	var missed int64
	if t.stats.Way == ByRDMA {
		if d.thread, err = t.r.thread(); err != nil {
			t.noRDMA, t.down.why = true, err
			return nil
		}
		defer t.r.giveBack(d.thread)
		missed = d.thread.Misses()
	}
	d.start(p)
	times, err := pipe.Run(ctx, p, d)
	d.end()
	st := p.Stats()
	if d.thread != nil {
		missed = d.thread.Misses() - missed - st.Refused
		t.stats.Registrations += missed
		t.stats.Hits += max(st.Registrations-missed, 0)
	}
	t.stats.add(s, &st, times)
	t.r.refused.Add(st.Refused)
	switch {
	case errors.Is(err, vmmc.ErrNoRDMA), errors.Is(err, verbs.ErrPinnedMemory), errors.Is(err, verbs.ErrRegions),
		errors.Is(err, verbs.ErrNotPermitted), errors.Is(err, pinwheel.ErrFault):
		t.noRDMA, t.down.why = true, err // the rest goes through the connection, or waits
		return nil
	case errors.Is(err, errNotMapped):
		t.noMap = true // the rest is read, which ends with the error of the disk
		return nil
	case errors.Is(err, verbs.ErrBusy):
		select {
		case <-time.After(crowded):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return err
}

func (s *SendStats) add(shape pipe.Shape, p *pipe.Stats, times pipe.Times) {
	s.Bytes += p.SentBytes
	s.Shape = shape
	s.Refused += p.Refused
	s.CopiedBytes += p.CopiedBytes
	s.Times.Wall += times.Wall
	s.Times.Fetch += times.Fetch
	s.Times.Register += times.Register
	s.Times.Post += times.Post
	s.Times.Release += times.Release
	s.Times.Sending += times.Sending
}
