package vmmc

import (
	"errors"

	"pinwheel/comm/vmmc/broker"
	"pinwheel/comm/vmmc/internal/identity"
	"pinwheel/comm/vmmc/internal/protocol"
)

// Errors of Open, and of finding an exporter.
var (
	// ErrAddress is the error of an address that is none, or that this node has no identity for.
	ErrAddress = errors.New("vmmc: bad address")
	// ErrIdentity is the error of a peer that is not who it should be, or who can't prove it.
	ErrIdentity = identity.Err
	// ErrNoBroker says that no broker runs on this machine, or that it went away.
	ErrNoBroker = broker.ErrNone
)

// Errors of Export and Unexport.
var (
	// ErrExported says that the identifier is in use.
	ErrExported = protocol.ErrExported
	// ErrNotExported says that the export is gone, or on its way.
	ErrNotExported = protocol.ErrNotExported
	// ErrTooManyExports says that this node has Options.MaxExports.
	ErrTooManyExports = errors.New("vmmc: too many exports")
	// ErrInUse says that memory of Alloc is exported or mapped.
	ErrInUse = errors.New("vmmc: memory in use")
)

// Errors of Import.
var (
	// ErrNotPermitted says that the Permissions of the export don't name this node.
	ErrNotPermitted = protocol.ErrNotPermitted
	// ErrTooManyImporters says that the export has as many importers as it allows.
	ErrTooManyImporters = protocol.ErrTooManyImporters
	// ErrTooManyWaiting says that too many imports of this node wait for the same exporter.
	ErrTooManyWaiting = protocol.ErrTooManyWaiting
)

// Errors of an Import that was granted, and of what uses it.
var (
	// ErrBounds is the error of a message that would leave the export. Nothing of it is sent.
	ErrBounds = errors.New("vmmc: outside the export")
	// ErrUnexported says that the exporter destroyed the mapping.
	ErrUnexported = errors.New("vmmc: unexported")
	// ErrUnimported says that this node destroyed the mapping.
	ErrUnimported = errors.New("vmmc: unimported")
	// ErrPeerGone says that the connection to the peer ended, or that the peer was silent for too long.
	ErrPeerGone = errors.New("vmmc: peer gone")
	// ErrTooManyOps is the error of SendAsync when Options.MaxOps messages wait already.
	ErrTooManyOps = errors.New("vmmc: too many messages wait")
	// ErrNoRDMA is the error of a message with SendOptions.Registered or SendOptions.RDMA that can't go by RDMA now. Some
	// of it may have arrived.
	ErrNoRDMA = errors.New("vmmc: no RDMA at present")
	// ErrNotShared is the error of Fill for an export that is not shared memory.
	ErrNotShared = errors.New("vmmc: not shared memory")
	// ErrUnmapped is the error of a Mapping that was unmapped.
	ErrUnmapped = errors.New("vmmc: unmapped")
	// ErrClosed says that this node was closed.
	ErrClosed = errors.New("vmmc: node closed")
)
