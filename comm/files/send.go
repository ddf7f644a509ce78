package files

import (
	"context"
	"os"

	"pinwheel/comm/files/pipe"
	"pinwheel/comm/vmmc"
)

// SendOptions are those of a Send.
type SendOptions struct {
	// Strategy has the numbers of the transfer. The zero value stands for the one of Registrar, or for pipe.Auto. Its
	// policy counts only without a Registrar, which has its own.
	Strategy pipe.Strategy
	// Registrar registers memory, and knows files that were sent before. nil: one that ends with this call.
	Registrar *Registrar
}

// Ways of the bytes, as Stats, SendStats and Client.Transport name them.
const (
	ByRDMA     = "rdma"
	ByMemory   = "shm"
	ByTLS      = "tls"
	BySendfile = "tcp"
)

// SendStats say how a Send went.
type SendStats struct {
	Bytes         int64  // that have arrived, from the beginning without a gap
	Way           string // ByRDMA, ByMemory or ByTLS: that of the last bytes
	Shape         pipe.Shape
	Times         pipe.Times
	Registrations int64 // that were made on the path of this transfer
	Hits          int64 // chunks that were registered already
	Refused       int64 // registrations for which there was no room
	CopiedBytes   int64 // through the ring
}

// Send sends n bytes of a file from an offset into an export, at a place in it, and returns when they have arrived: the
// one call of section 4 of the paper, under which its strategies are four sets of numbers. It fails with ErrChanged if
// the file changes meanwhile, with io.ErrUnexpectedEOF if it has fewer bytes, and with the errors of vmmc.Import.Send.
// SendStats.Bytes counts also then.
func Send(
	ctx context.Context, dst *vmmc.Import, at uint64, f *os.File, from, n int64, o SendOptions,
) (s SendStats, err error) {
	r := o.Registrar
	if r == nil {
		if r, err = newRegistrar(dst.Node(), RegistrarOptions{Strategy: o.Strategy}, !dst.Shared()); err != nil {
			return s, err
		}
		defer r.Close() // what it fails with is nothing that the caller could change
	}
	t := &transfer{r: r, client: dst, strategy: o.Strategy, file: f, from: from, n: n, dst: dst, at: at}
	if t.strategy == (pipe.Strategy{}) {
		t.strategy = r.opt.Strategy
	}
	if t.stamp, err = stampOf(f); err != nil {
		return s, err
	}
	err = t.run(ctx)
	return t.stats, err
}
