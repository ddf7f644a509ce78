package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"syscall"

	"pinwheel/comm/files/internal/wire"
	"pinwheel/comm/vmmc"
	"pinwheel/comm/vmmc/rpc"
)

// partial is an error after some bytes were moved.
type partial struct {
	bytes int64
	err   error
}

func (p *partial) Error() string { return p.err.Error() }
func (p *partial) Unwrap() error { return p.err }

// errHandle says that a request names nothing that is open.
var errHandle = errors.New("not open")

// codes are those of errors that have no errno of their own. The first that matches counts.
var codes = []struct {
	err  error
	code uint32
}{
	{ErrChanged, wire.CodeChanged}, {ErrChecksum, wire.CodeChecksum}, {ErrNotSmall, wire.CodeNotSmall},
	{ErrVersion, wire.CodeVersion}, {io.ErrUnexpectedEOF, wire.CodeShort}, {errHandle, wire.CodeHandle},
	{ErrNoRDMA, wire.CodeNoRDMA}, {ErrPeerGone, wire.CodeGone}, {errOutside, wire.CodeOutside},
}

// statusOf is what the client hears of an error.
func statusOf(err error) *wire.Status {
	var bytes int64
	var p *partial
	if errors.As(err, &p) {
		bytes = p.bytes
	}
	for _, c := range codes {
		if errors.Is(err, c.err) {
			return wire.Fail(c.code, err.Error(), bytes)
		}
	}
	var errno syscall.Errno
	switch {
	case errors.As(err, &errno) && errno != 0:
		return wire.Fail(uint32(errno), err.Error(), bytes)
	case errors.Is(err, fs.ErrClosed):
		return wire.Fail(wire.CodeHandle, err.Error(), bytes)
	}
	return wire.Fail(wire.CodeTrouble, err.Error(), bytes)
}

// errorOf is what the caller of a client hears of a status.
func errorOf(op, name string, s *wire.Status) error {
	err := errors.New(s.Text)
	if s.Code < wire.CodeChanged {
		err = syscall.Errno(s.Code)
	}
	for _, c := range codes {
		if c.code == s.Code {
			err = c.err
		}
	}
	switch s.Code {
	case wire.CodeHandle:
		err = ErrClosed
	case wire.CodeNoRDMA:
		err = noRDMA(s)
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}

// callError is what the caller of a client hears of a call that has no answer.
func callError(err error) error {
	var text rpc.Error
	switch {
	case errors.Is(err, rpc.ErrClosed):
		return ErrClosed
	case errors.Is(err, rpc.ErrProtocol), errors.Is(err, rpc.ErrUnknown), errors.As(err, &text):
		return fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	return err
}

// sendError is what a client hears of a message of the server to its window, or of the server's that it could not send.
func sendError(err error) error {
	switch {
	case errors.Is(err, vmmc.ErrUnexported), errors.Is(err, vmmc.ErrUnimported), errors.Is(err, vmmc.ErrBounds):
		return fmt.Errorf("%w: %w", syscall.EFAULT, err)
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("%w: %w", ErrPeerGone, err) // which hardly anybody hears
	}
	return err
}
