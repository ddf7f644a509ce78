package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"pinwheel"
	"pinwheel/comm/files/pipe"
	"pinwheel/comm/vmmc"
	"pinwheel/mem"
	"pinwheel/verbs"
)

// device sends the chunks of one pipe.Pipe into an export.
type device struct {
	r       *Registrar
	file    *os.File
	from    int64 // where the pipe begins in the file
	dst     *vmmc.Import
	at      uint64           // where it begins in the export
	mapping *mapping         // nil: all chunks are copied
	thread  *pinwheel.Thread // nil: nothing is registered, and chunks go through the connection
	insists bool             // none does that

	kept      int64 // bytes of the file, from its beginning, whose registrations may stay
	maps      int   // slots of the pipe that are no slots of the ring
	uses      []pinwheel.Use
	held      []bool     // by slot of the ring: it is in use until the end, and not anew for each chunk
	posted    []*vmmc.Op // by slot, the latest of each
	slots     int
	slotBytes int64
	ring      []byte // nil before the first Fetch into it
	site      pinwheel.Site
	pipe.Inbox
	progress *vmmc.Progress // nil: nothing goes by RDMA
}

// Kinds of communication, as the predictor tells them apart.
const (
	opMap pinwheel.Op = iota + 1
	opCopy
)

// fileSite is the site of all files; their numbers tell them apart.
var fileSite = pinwheel.NewSite("file")

// start makes the device ready for a pipe.
func (d *device) start(p *pipe.Pipe) {
	shape := p.Shape()
	d.slots, d.slotBytes = p.Ring()
	if shape.Source == pipe.Map {
		d.maps = shape.Depth
	}
	d.uses = make([]pinwheel.Use, d.maps+d.slots)
	d.held = make([]bool, d.slots)
	d.posted = make([]*vmmc.Op, d.maps+d.slots)
	d.Inbox = pipe.NewInbox(d.maps + d.slots)
	if d.thread != nil {
		d.progress = d.dst.Progress()
	}
	d.site = fileSite
	if d.mapping != nil {
		d.site[1] = d.mapping.stamp.ino
	}
}

// end gives back what the device had. Its pipe is finished.
func (d *device) end() {
	for slot, held := range d.held {
		if held {
			d.thread.Release(&d.uses[d.maps+slot])
		}
	}
	if d.ring != nil {
		d.r.rings.put(d.ring)
	}
}

func (d *device) memory(c pipe.Chunk) []byte {
	if c.Source == pipe.Copy {
		return d.buffer(c)[:c.Len:c.Len]
	}
	return d.mapping.data[d.from+c.At:][:c.Len:c.Len]
}

// buffer is the whole slot of a chunk of the ring.
func (d *device) buffer(c pipe.Chunk) []byte { return d.ring[int64(c.Slot)*d.slotBytes:][:d.slotBytes] }

// slot numbers the chunks of the ring behind those of the mapping.
func (d *device) slot(c pipe.Chunk) int {
	if c.Source == pipe.Copy {
		return d.maps + c.Slot
	}
	return c.Slot
}

func (d *device) use(c pipe.Chunk) *pinwheel.Use { return &d.uses[d.slot(c)] }

// Fetch reads into the ring, or looks whether the file still has what is mapped.
func (d *device) Fetch(c pipe.Chunk) (int64, error) {
	if c.Source == pipe.Map {
		return d.has(c)
	}
	if d.ring == nil {
		var err error
		if d.ring, err = d.r.rings.get(int64(d.slots) * d.slotBytes); err != nil {
			return 0, err
		}
	}
	n, err := d.file.ReadAt(d.memory(c), d.from+c.At)
	return int64(n), short(err)
}

// short makes the error of a file that has ended too early.
func short(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// errNotMapped says that pages of a mapping can't be had: the file was truncated, or a disk can't be read, or a file
// system is too full for its holes. Whoever reads the file hears why.
var errNotMapped = errors.New("files: pages of the mapping can't be had")

// has looks how many bytes of a chunk the file still has. It does not populate the mapping: the registration does that,
// if there has to be one, and doing it before walks over all pages twice.
func (d *device) has(c pipe.Chunk) (int64, error) {
	s, err := stampOf(d.file)
	return max(min(c.Len, s.size-d.from-c.At), 0), err
}

// Register makes a chunk usable by the device of the node.
func (d *device) Register(c pipe.Chunk) error {
	if d.thread == nil {
		return nil
	}
	if c.Source == pipe.Copy {
		return d.hold(c)
	}
	acquire := d.thread.Acquire
	if d.from+c.At+c.Len > d.kept {
		acquire = d.thread.AcquireOnce
	}
	err := acquire(d.use(c), mem.RangeOf(d.memory(c)), 0, opMap, &d.site)
	if errors.Is(err, verbs.ErrNotMapped) {
		return fmt.Errorf("%w: %w", errNotMapped, err)
	}
	return err
}

// hold makes the slot of a chunk usable until the end of the transfer. It is a static buffer: a use for each chunk
// would tell the policy nothing, but have its helper thread take time from copies.
func (d *device) hold(c pipe.Chunk) error {
	if d.held[c.Slot] {
		return nil
	}
	err := d.thread.Acquire(d.use(c), mem.RangeOf(d.buffer(c)), 0, opCopy, &d.site)
	d.held[c.Slot] = err == nil
	return err
}

// Post sends a chunk. Those of the ring go through the connection if RDMA is down by now.
func (d *device) Post(c pipe.Chunk) error {
	o := vmmc.SendOptions{Progress: d.progress, Done: func(err error) { d.Put(pipe.Completion{Chunk: c, Err: err}) }}
	if o.NoRDMA = d.thread == nil; !o.NoRDMA {
		o.Registered = d.use(c)
	}
	b, at := d.memory(c), d.at+uint64(c.At)
	op, err := d.dst.SendAsync(b, at, o)
	for tries := 0; errors.Is(err, vmmc.ErrNoRDMA) && tries < leaseTries && d.renew(); tries++ {
		op, err = d.dst.SendAsync(b, at, o)
	}
	if errors.Is(err, vmmc.ErrNoRDMA) && c.Source == pipe.Copy && !d.insists {
		o.Registered, o.NoRDMA = nil, true
		op, err = d.dst.SendAsync(b, at, o)
	}
	if errors.Is(err, vmmc.ErrTooManyOps) {
		return verbs.ErrBusy
	}
	if err != nil {
		return err
	}
	d.posted[d.slot(c)] = op
	return nil
}

// Cancel gives up what was posted: a client may acknowledge nothing, for ever.
func (d *device) Cancel(cause error) {
	for _, op := range d.posted {
		if op != nil {
			op.Cancel(cause)
		}
	}
}

// leaseTries is how often a chunk waits for the lease of the window, which ends whenever nothing is on its way.
const leaseTries = 3

// renew waits for that lease.
func (d *device) renew() bool {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return d.dst.AwaitRDMA(ctx)
}

// Release ends the use of a registration. That of a slot of the ring is for all chunks of it.
func (d *device) Release(c pipe.Chunk) {
	if d.thread != nil && c.Source == pipe.Map {
		d.thread.Release(d.use(c))
	}
}

// Wait takes completions itself if nobody else does: to be woken for each costs as much as to send a small chunk. It
// looks for them a moment before it sleeps, unless that keeps a processor from another transfer.
func (d *device) Wait() {
	if d.progress != nil {
		d.progress.Poll = d.r.alone()
		if d.progress.Sleep() {
			return
		}
	}
	d.Inbox.Wait()
}

// Wake has Wait return, wherever it waits.
func (d *device) Wake() {
	if d.Inbox.Wake(); d.progress != nil {
		d.progress.Wake()
	}
}
