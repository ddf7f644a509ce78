package rpc

import "errors"

// Errors of calls. Those of the connection wrap vmmc.ErrPeerGone; a context ends calls with its own.
var (
	// ErrClosed says that this Client or Server was closed.
	ErrClosed = errors.New("rpc: closed")
	// ErrUnknown says that the server has no handler for the procedure. Nothing was executed.
	ErrUnknown = errors.New("rpc: unknown procedure")
	// ErrTooMany says that the server runs as many handlers for this connection as it may, or holds as many bytes for
	// it. Nothing was executed.
	ErrTooMany = errors.New("rpc: too many calls at a time")
	// ErrTooLong is the error of a request that is longer than Options.MaxBytes. Nothing was sent.
	ErrTooLong = errors.New("rpc: request too long")
	// ErrProtocol says that the peer has broken the protocol, and so lost its connection.
	ErrProtocol = errors.New("rpc: malformed frame")
)

// Error is the text of the error that a handler returned.
type Error string

func (e Error) Error() string { return string(e) }
