package files

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"pinwheel/comm/files/internal/wire"
	"pinwheel/comm/vmmc"
)

const (
	// insistTime is how long an end that insists on RDMA waits for it: a node tries again a second after it has failed,
	// and then less often.
	insistTime = 5 * time.Second
	// insistPause is the pause between two looks.
	insistPause = 50 * time.Millisecond
)

// errInsistsOnTCP is the error of options that contradict each other.
var errInsistsOnTCP = errors.New("files: contents that must go by RDMA don't go over TCP without encryption")

// errNoDevice is why a server has no RDMA.
var errNoDevice = fmt.Errorf("%w: the server has no device", ErrNoRDMA)

// outage is how long RDMA has been down for somebody who insists on it. It is for one goroutine.
type outage struct {
	since time.Time // zero: it is not down
	why   error     // the latest reason, by whoever has one; may be nil
}

// wait pauses before RDMA is tried again. It fails with ErrNoRDMA if it has been down for too long.
func (o *outage) wait(ctx context.Context) error {
	if o.since.IsZero() {
		o.since = time.Now()
	}
	switch {
	case time.Since(o.since) < insistTime:
	case o.why != nil:
		return fmt.Errorf("%w for %v: %w", ErrNoRDMA, insistTime, o.why)
	default:
		return fmt.Errorf("%w for %v", ErrNoRDMA, insistTime)
	}
	select {
	case <-time.After(insistPause):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// insist waits for RDMA to a new client, if one of the ends insists on it: it comes a moment after the connection.
func (c *Client) insist(ctx context.Context) error {
	if !c.insists {
		return nil
	}
	err := c.awaitRDMA(ctx)
	if err != nil && !c.opt.RequireRDMA {
		err = fmt.Errorf("the server insists on RDMA: %w", err)
	}
	return err
}

func (c *Client) awaitRDMA(ctx context.Context) error {
	if _, err := c.node.Provider(); err != nil {
		return fmt.Errorf("%w: this end has no device", ErrNoRDMA)
	}
	var down outage
	for c.way.Load() != ByRDMA {
		if c.way.Load() == ByMemory {
			return fmt.Errorf("%w: both ends share memory", ErrNoRDMA)
		}
		if err := down.wait(ctx); err != nil {
			if ctx.Err() != nil {
				err = fmt.Errorf("%w so far: %w", ErrNoRDMA, err)
			}
			return err
		}
		err := c.window.Close()
		c.window = nil
		if err == nil { // the server says again which way it takes
			c.window, err = c.NewWindow(ctx, c.opt.WindowBytes)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// send sends a message and waits until it has arrived, or the client is closed.
func (c *Client) send(in *vmmc.Import, b []byte, at uint64) error {
	var down outage
	for {
		if c.insists { // the lease ends whenever nothing is on its way
			ctx, cancel := context.WithTimeout(c.ctx, patience)
			in.AwaitRDMA(ctx)
			cancel()
		}
		op, err := in.SendAsync(b, at, vmmc.SendOptions{RDMA: c.insists})
		if err == nil {
			err = op.Wait(c.ctx)
		}
		switch {
		case errors.Is(err, vmmc.ErrNoRDMA): // only who insists hears that
			down.why = err
			if err := down.wait(c.ctx); err != nil {
				return err
			}
		case errors.Is(err, vmmc.ErrTooManyOps):
			select {
			case <-time.After(crowded):
			case <-c.ctx.Done():
				return context.Cause(c.ctx)
			}
		default:
			return err
		}
	}
}

// noRDMA is the error of a status with wire.CodeNoRDMA, whose text says why.
func noRDMA(s *wire.Status) error {
	return fmt.Errorf("%w%s", ErrNoRDMA, strings.TrimPrefix(s.Text, ErrNoRDMA.Error()))
}
