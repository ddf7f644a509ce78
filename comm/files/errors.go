package files

import (
	"errors"
	"syscall"

	"pinwheel/comm/vmmc"
)

// Errors of requests. Those of the file system of the server are *fs.PathError with a syscall.Errno, so that
// errors.Is(err, fs.ErrNotExist) works. EROFS stands for a server that is read-only, EACCES for a name that leads out
// of what is served, and for what ServerOptions.Authorize refuses, EMFILE and EUSERS for the limits of the server.
var (
	// ErrPeerGone says that the connection to the other end is over, or that the other end was silent for too long.
	ErrPeerGone = vmmc.ErrPeerGone
	// ErrChanged says that the file is not the one that was opened: it was written to, truncated or replaced. What
	// has arrived may be of either.
	ErrChanged = errors.New("files: the file has changed")
	// ErrChecksum says that the bytes at the server have another checksum than those of the client.
	ErrChecksum = errors.New("files: checksum mismatch")
	// ErrNotSmall says that a file has more than SmallBytes, and must be opened.
	ErrNotSmall = errors.New("files: not a small file")
	// ErrVersion says that the other end speaks another version of the protocol.
	ErrVersion = errors.New("files: unknown version of the protocol")
	// ErrProtocol says that the other end sent something malformed.
	ErrProtocol = errors.New("files: malformed message")
	// ErrNoRDMA says that bytes had to go by RDMA, as one of the ends insists on it, and that there was none for some
	// seconds, or never. Where it comes with a count, so many bytes had arrived.
	ErrNoRDMA = errors.New("files: no RDMA")
	// ErrClosed is the error of calls on a Server, Client, File, Upload or Window that was closed.
	ErrClosed = errors.New("files: closed")
)

// errOutside is EACCES that says why: of a name that leads out of what is served.
var errOutside error = outside{}

type outside struct{}

func (outside) Error() string { return "leads out of the directory that is served" }
func (outside) Unwrap() error { return syscall.EACCES }
