//go:build linux && cgo

package vmmc

import (
	"context"
	"errors"
	"net/netip"

	"pinwheel/mem"
	"pinwheel/verbs"
	"pinwheel/verbs/rdma"
	"pinwheel/verbs/rdma/rc"
)

// rdmaDevice is a device of libibverbs.
type rdmaDevice struct {
	dev    *rdma.Device
	common *rdma.Provider
}

// openDevice opens the device NAME or NAME:PORT; empty: the first one.
func openDevice(name string) (device, error) {
	dev, err := rdma.OpenDevice(name)
	if err != nil {
		return nil, err
	}
	common, err := dev.NewProvider()
	if err != nil {
		return nil, errors.Join(err, dev.Close())
	}
	return &rdmaDevice{dev, common}, nil
}

// retries are as many as there are, but without the number that rdma_rxe takes for "without end".
const retries = 6

func (d *rdmaDevice) Provider() verbs.Provider { return d.common }

// inlineBytes is how much of a message may be inline: then the device need not read memory for it. perftest asks for as
// much.
const inlineBytes = 220

func (d *rdmaDevice) Sender(local netip.Addr) (queuePair, error) {
	o := rc.Options{Rights: rc.NoRights, Depth: sendDepth, Retries: retries, Inline: inlineBytes}
	c, err := rc.New(d.common, local, o)
	if err != nil {
		return nil, err
	}
	return rcConn{c}, nil
}

func (d *rdmaDevice) Receiver(local netip.Addr) (domain, error) {
	p, err := d.dev.NewProvider()
	if err != nil {
		return nil, err
	}
	// No more than one request is ever posted here.
	c, err := rc.New(p, local, rc.Options{Rights: verbs.AccessRemoteWrite, Depth: 1})
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	// Nobody sends to this receive: it completes when the queue pair fails.
	if err := c.Receive(0, rc.Local{}); err != nil {
		return nil, errors.Join(err, c.Close(), p.Close())
	}
	return &rdmaDomain{rcConn{c}, p}, nil
}

func (d *rdmaDevice) Check() error { return d.dev.Check() }

func (d *rdmaDevice) Close() error { return errors.Join(d.common.Close(), d.dev.Close()) }

// rcConn is a queue pair of package rc.
type rcConn struct{ *rc.Conn }

func (c rcConn) Write(id uint64, src localBytes, addr uint64, rkey uint32) error {
	l := rc.Local{Range: src.Range, LKey: src.lkey, Inline: src.inline}
	return c.Conn.Write(id, l, rc.Remote{Addr: addr, RKey: rkey})
}

func (c rcConn) Poll(dst []completion) (int, error) {
	var got [completionBatch]rc.Completion
	n, err := c.Conn.Poll(got[:min(len(dst), len(got))])
	return translate(dst, got[:n]), err
}

func (c rcConn) Wait(ctx context.Context, dst []completion) (int, error) {
	var got [completionBatch]rc.Completion
	n, err := c.Conn.Wait(ctx, got[:min(len(dst), len(got))])
	return translate(dst, got[:n]), err
}

func translate(dst []completion, got []rc.Completion) int {
	for k, w := range got {
		refused := w.Status == rc.StatusRemoteAccess || w.Status == rc.StatusRemoteInvalid
		dst[k] = completion{id: w.ID, err: w.Err(), access: refused, flushed: w.Status == rc.StatusFlushed}
	}
	return len(got)
}

// rdmaDomain is a protection domain with one queue pair.
type rdmaDomain struct {
	rcConn
	p *rdma.Provider
}

func (d *rdmaDomain) Register(r mem.Range) (verbs.Region, error) {
	return d.p.RegisterExact(r, verbs.AccessLocalWrite|verbs.AccessRemoteWrite)
}

func (d *rdmaDomain) Deregister(g verbs.Region) error { return d.p.Deregister(g) }

func (d *rdmaDomain) Close() error { return errors.Join(d.rcConn.Close(), d.p.Close()) }
