package stream

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"time"

	"pinwheel/comm/vmmc"
)

// retry is the pause after which Dial asks again: another request may have been written over its own, or the
// listener may have had no room, also for those who ask.
const retry = 500 * time.Millisecond

// Dial connects to the listener for a service at the address of a node. It waits for the listener until ctx
// ends. The node n must listen at an address that the other node can reach. Dial fails with vmmc.ErrClosed if n is
// closed meanwhile.
func Dial(ctx context.Context, n *vmmc.Node, address string, service uint32, o Options) (*Conn, error) {
	if err := o.EnsureDefaults(); err != nil {
		return nil, err
	}
	mine, err := o.reachable(n, address)
	if err != nil {
		return nil, err
	}
	c, err := newConn(n, &o, o.Peers)
	if err != nil {
		return nil, err
	}
	to, err := c.ask(ctx, address, service, request{c.id, mine})
	if err == nil {
		err = c.connected(to, Addr{Node: mine}, Addr{address, service})
	}
	if err == nil {
		_, err = c.say(ctx, answerAt, 1)
	}
	if err != nil {
		select {
		case <-c.closed: // with the node: nobody else has the connection yet
			err = vmmc.ErrClosed
		default:
		}
		c.Close()
		return nil, fmt.Errorf("stream: service %d of %s: %w", service, address, err)
	}
	return c, nil
}

// ask requests a connection until there is an answer, and imports the inbox that it names.
func (c *Conn) ask(ctx context.Context, address string, service uint32, r request) (*vmmc.Import, error) {
	door, err := c.enter(ctx, address, service)
	if err != nil {
		return nil, err
	}
	defer door.Unimport()
	if door.Bytes() != slots*slotBytes {
		return nil, fmt.Errorf("the export has %d bytes, and so is no listener", door.Bytes())
	}
	again := time.NewTicker(retry)
	defer again.Stop()
	for {
		slot := rand.Uint64N(slots)
		err := door.Send(ctx, r.encode(), slot*slotBytes, vmmc.SendOptions{Notify: true})
		if err != nil && !errors.Is(err, vmmc.ErrTooManyOps) { // else it is asked again
			return nil, err
		}
		select {
		case <-c.answered:
			a, err := c.answer()
			if err != nil {
				return nil, err
			}
			granted, cancel := context.WithTimeout(ctx, c.linger) // the listener may have given up
			defer cancel()
			return c.node.Import(granted, uint32(a), address)
		case <-again.C:
		case <-door.Done():
			return nil, door.Err()
		case <-c.closed: // with the node
			return nil, net.ErrClosed
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// enter imports the export of a listener, and waits while as many ask there as may.
func (c *Conn) enter(ctx context.Context, address string, service uint32) (*vmmc.Import, error) {
	for {
		door, err := c.node.Import(ctx, service, address)
		if !errors.Is(err, vmmc.ErrTooManyImporters) && !errors.Is(err, vmmc.ErrTooManyWaiting) {
			return door, err
		}
		select {
		case <-time.After(retry/2 + rand.N(retry)): // not all at the same time
		case <-c.closed: // with the node
			return nil, net.ErrClosed
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", ctx.Err(), err)
		}
	}
}

// answer returns what the listener answered.
func (c *Conn) answer() (uint64, error) {
	c.reading.Lock() // the memory stays
	defer c.reading.Unlock()
	if err := c.usable(&c.readDeadline); err != nil {
		return 0, err
	}
	return c.in.answer.Load(), nil
}
