package vmmc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"pinwheel/comm/vmmc/internal/lease"
	"pinwheel/comm/vmmc/internal/protocol"
	"pinwheel/comm/vmmc/internal/wire"
	"pinwheel/internal/clock"
	"pinwheel/mem"
)

// rdmaSender carries the messages of a connection by RDMA, while that works. Messages keep their order: what goes
// through the connection waits until the writes before it have completed, and the reverse.
type rdmaSender struct {
	link   *outbound
	qp     queuePair
	number uint64        // of the attempt
	answer chan string   // the exporter's Endpoint; its capacity is 1
	wake   chan struct{} // somebody wants completions; capacity 1
	over   chan struct{} // closed when the exporter says that nothing of the attempt lands any more

	failing chan struct{} // closed by failed

	// copies has a place for each write that may be outstanding. Short messages are sent from there: they cost
	// less to copy than to register, and pin no pages of the heap.
	copies  []byte
	lease   chan struct{} // the holder has one more; capacity 1
	copying source

	// link.mu protects what follows.
	up      bool
	ended   bool // the attempt is over
	holder  *lease.Holder
	lent    []*Import          // whose short messages use a lease
	later   bool               // a timer will make run wait for completions
	running bool               // run waits for completions
	sleeper *Progress          // that waits for completions, in place of run
	none    bool               // the exporter has no RDMA
	posted  [sendDepth]posting // by ID modulo sendDepth
	first   uint64             // ID of the oldest posting
	next    uint64             // ID after the latest
	worked  bool               // a write has completed
	refused bool               // a write was
	err     error              // the first of a write
	flushed bool               // err is that of a write which another one has ended

	batch [completionBatch]completion // of collect
}

// posting is a write that was posted: of an op, or else a short message that Send has told to be sent.
type posting struct {
	op   *Op
	done bool

	to        *Import
	low, high uint64 // the message goes to bytes of the export from low on, before high
}

// remoteRegion is where an export can be written to.
type remoteRegion struct {
	of   *rdmaSender // nil: nowhere
	addr uint64
	key  uint32
}

const (
	copyBytes = 1 << 10 // 1 KiB, of a message that is copied

	firstPause = time.Second // after RDMA failed, before it is tried again
	maxPause   = time.Minute
)

// useRDMA brings RDMA up, and up again whenever it has failed, until the connection ends.
func (o *outbound) useRDMA() {
	defer o.triedRDMA()
	dev, err := o.node.fabric.open(o.node)
	if err != nil {
		return
	}
	pause, said := firstPause, false
	for number := uint64(1); ; number++ {
		worked, err := o.attempt(dev, number)
		o.triedRDMA()
		if err == nil || o.reason() != nil {
			return
		}
		if worked {
			pause, said = firstPause, false
		}
		if !said {
			o.node.warn("messages to %s go through the connection, as RDMA is down: %v", o.address, err)
		}
		said = true
		select {
		case <-time.After(pause):
		case <-o.ended:
			return
		}
		pause = min(2*pause, maxPause)
	}
}

// triedRDMA tells those who wait for RDMA that it is up, or that it may be down for long. Only the goroutine of useRDMA
// calls it.
func (o *outbound) triedRDMA() {
	select {
	case <-o.tried:
	default:
		close(o.tried)
	}
}

// attempt uses RDMA as long as it works. It tells whether it did, and why it does no more: nil if the exporter
// has none.
func (o *outbound) attempt(dev device, number uint64) (worked bool, err error) {
	qp, err := dev.Sender(localAddr(o.conn))
	if err != nil {
		return false, err
	}
	s := &rdmaSender{
		link: o, qp: qp, number: number,
		answer: make(chan string, 1), wake: make(chan struct{}, 1), over: make(chan struct{}),
		lease: make(chan struct{}, 1), failing: make(chan struct{}),
	}
	s.holder = newHolder(s)
	o.mu.Lock()
	o.rdma = s
	o.mu.Unlock()
	o.send(&wire.Frame{Type: wire.Endpoint, Number: number, Name: string(qp.Endpoint())}, nil)
	worked, err = s.run()
	o.send(&wire.Frame{Type: wire.Down, Number: number, Code: wire.RDMAFailed}, nil)
	select {
	case <-s.over:
	case <-o.ended:
	}
	err = errors.Join(err, qp.Close())
	o.mu.Lock()
	none := s.none
	s.giveUp()
	o.mu.Unlock()
	s.unmapCopies()
	o.stir()
	if none {
		return false, nil
	}
	return worked, err
}

func (s *rdmaSender) mapCopies() (err error) {
	s.copies, err = unix.Mmap(-1, 0, sendDepth*copyBytes, readWrite, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return os.NewSyscallError("mmap", err)
	}
	s.copying.site = copySite
	if err := s.link.node.fabric.use(&s.copying, mem.RangeOf(s.copies), opCopy); err != nil {
		s.unmapCopies()
		return err
	}
	return nil
}

func (s *rdmaSender) unmapCopies() {
	if s.copies == nil {
		return // it came to nothing
	}
	s.link.node.fabric.release(&s.copying)
	// It fails for a Manager that is closed, which has nothing registered.
	_ = s.link.node.fabric.invalidate(mem.RangeOf(s.copies))
	_ = unix.Munmap(s.copies) // it fails for nothing that we mapped
}

// run connects the queue pair, and takes completions until all that was posted has completed after its end.
func (s *rdmaSender) run() (worked bool, err error) {
	o := s.link
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if err := s.connect(ctx, cancel); err != nil {
		return false, err
	}
	o.mu.Lock()
	s.up = true
	for _, i := range o.imports {
		i.lease()
	}
	o.mu.Unlock()
	o.triedRDMA()
	o.node.tasks.Go(s.renewals)
	var batch [completionBatch]completion
	for {
		o.mu.Lock()
		s.running = !s.idle()
		running := s.running
		o.mu.Unlock()
		if !running { // else each completion would wake this goroutine, also one that somebody else has taken
			<-s.wake
			continue
		}
		n, err := s.qp.Wait(ctx, batch[:])
		o.mu.Lock()
		s.running = false
		s.take(batch[:n])
		if err != nil {
			s.up = false
			if s.err == nil {
				s.err = err
			}
			err = s.err
		}
		worked, refused, why := s.worked, s.refused, s.err
		o.mu.Unlock()
		if refused {
			o.fail(fmt.Errorf("it refused a message: %w", why))
		}
		if err != nil {
			return worked, err
		}
	}
}

// connect waits for the exporter's end of the queue pair, and for a first write to reach it. cancel gives up all that
// waits for completions.
func (s *rdmaSender) connect(ctx context.Context, cancel context.CancelFunc) error {
	o := s.link
	select {
	case peer := <-s.answer:
		if err := s.qp.Ready([]byte(peer)); err != nil {
			return err
		}
	case <-s.over:
		return errors.New("the exporter can't use it")
	case <-o.ended:
		return o.reason()
	}
	go s.end(ctx, cancel)
	if err := s.probe(ctx); err != nil {
		return fmt.Errorf("the device of the exporter was not reached: %w", err)
	}
	if err := o.node.fabric.manage(o.node); err != nil {
		return err
	}
	return s.mapCopies()
}

// mayUseRDMA tells whether the exporter may be on another machine, and this node wants RDMA.
func (o *outbound) mayUseRDMA() bool {
	_, local := o.conn.(*unixConn)
	return !local && !o.node.opt.NoRDMA
}

// RDMA tells whether messages go by RDMA at present. The other ones that are not Shared go through the
// connection.
func (i *Import) RDMA() bool {
	i.link.mu.Lock()
	defer i.link.mu.Unlock()
	return i.rdma()
}

// rdma is RDMA; link.mu is held.
func (i *Import) rdma() bool {
	s := i.link.rdma
	return s != nil && s.up && i.remote.of == s
}

// introduced takes what the exporter says of its RDMA. mu is held.
func (o *outbound) introduced(f *wire.Frame) error {
	s := o.rdma
	switch {
	case f.Type == wire.Region:
		if i := o.imports[f.Number]; i != nil {
			i.remote = remoteRegion{s, f.Offset, f.Key}
			i.leaseAnswered()
		}
		if s != nil {
			return s.granted(f.Number)
		}
	case f.Type == wire.NoLease:
		if i := o.imports[f.Number]; i != nil {
			i.leaseAnswered()
		}
		if s != nil {
			return s.holder.Refused(f.Number, clock.NowNs())
		}
	case f.Type == wire.Recall:
		if s != nil {
			s.recalled(f.Number)
		}
	case s == nil || f.Number != s.number: // of an attempt that is over
	case f.Type == wire.Endpoint:
		select {
		case s.answer <- f.Name:
		default:
			return fmt.Errorf("%w: a second endpoint", protocol.ErrProtocol)
		}
	case f.Type == wire.Down:
		select {
		case <-s.over: // the answer to our own Down, which tells nothing of why the exporter sent the first one
		default:
			s.none = f.Code == wire.NoRDMA
			close(s.over)
		}
	}
	return nil
}
