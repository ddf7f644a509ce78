// Package unixsocket listens on Unix sockets that have a path, knows who connects, and takes descriptors that come.
package unixsocket

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// lockWait bounds the wait for another process that starts in the same directory.
const lockWait = time.Second

// MaxPath is the most bytes of a path: sun_path of unix(7), without the zero at its end.
const MaxPath = len(unix.RawSockaddrUnix{}.Path) - 1

// CheckPath finds a path that is too long for a socket, of which the kernel only says that it is invalid.
func CheckPath(path string) error {
	if len(path) > MaxPath {
		return fmt.Errorf("%s: a socket's path may have %d bytes, and this one has %d: choose a shorter one",
			path, MaxPath, len(path))
	}
	return nil
}

// Listen listens on a path; network is unix or unixpacket. It replaces the socket of a process that was
// killed: one that nobody listens on any more. Anything else at the path stays, and Listen fails with
// EADDRINUSE.
//
// A lock on the directory (flock(2)) keeps two processes from replacing the same socket: the second would
// remove the one that the first has just made. Where the directory can't be locked, nothing is replaced.
func Listen(network, path string) (*Listener, error) {
	if err := CheckPath(path); err != nil {
		return nil, err
	}
	unlock, locked := lockDir(filepath.Dir(path))
	defer unlock()
	l, err := listen(network, path)
	if !locked || !errors.Is(err, syscall.EADDRINUSE) || !abandoned(path) {
		return l, err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return listen(network, path)
}

// Listener is a net.UnixListener whose Close removes the socket that it made, and not another one: somebody may have
// removed the first, and listen there now.
type Listener struct {
	*net.UnixListener
	path   string
	socket fs.FileInfo
	closed sync.Once
}

func listen(network, path string) (*Listener, error) {
	l, err := net.ListenUnix(network, &net.UnixAddr{Net: network, Name: path})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	socket, err := os.Lstat(path)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return &Listener{UnixListener: l, path: path, socket: socket}, nil
}

// ListenMode is Listen, and gives the socket a mode, whatever the umask is: who may connect.
func ListenMode(network, path string, mode fs.FileMode) (*Listener, error) {
	l, err := Listen(network, path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, mode); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// Close implements net.Listener.
func (l *Listener) Close() (err error) {
	l.closed.Do(func() { // afterwards, the number of the inode is anybody's
		unlock, _ := lockDir(filepath.Dir(l.path))
		defer unlock()
		if there, statErr := os.Lstat(l.path); statErr == nil && os.SameFile(there, l.socket) {
			err = os.Remove(l.path)
		}
	})
	return errors.Join(err, l.UnixListener.Close())
}

// lockDir locks a directory. Strangers who can read the directory can lock it as well, so the wait is bounded.
func lockDir(dir string) (unlock func(), locked bool) {
	f, err := os.OpenFile(dir, unix.O_DIRECTORY, 0)
	if err != nil {
		return func() {}, false
	}
	for end := time.Now().Add(lockWait); ; time.Sleep(time.Millisecond) {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, true
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) || time.Now().After(end) {
			f.Close()
			return func() {}, false
		}
	}
}

// abandoned tells whether a path is a socket that nobody listens on. connect(2) refuses a regular file with the
// same error as such a socket. A listener of another type than that of the attempt answers EPROTOTYPE.
func abandoned(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || info.Mode().Type() != fs.ModeSocket {
		return false
	}
	c, err := net.Dial("unix", path)
	if err == nil {
		c.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}

// Peer returns who called connect(2) or listen(2) at the other end, as the kernel noted then (SO_PEERCRED,
// unix(7)).
func Peer(c *net.UnixConn) (*unix.Ucred, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	var cred *unix.Ucred
	err2 := raw.Control(func(fd uintptr) {
		cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err = errors.Join(err, err2); err != nil {
		return nil, fmt.Errorf("SO_PEERCRED: %w", err)
	}
	return cred, nil
}

// ReceiveDescriptor reads one byte, and returns the descriptor that came with it (SCM_RIGHTS, unix(7)), which the caller
// closes.
func ReceiveDescriptor(c *net.UnixConn) (fd int, err error) {
	oob := make([]byte, unix.CmsgSpace(4)) // bytes: room for one descriptor. The kernel closes those that don't fit
	_, n, flags, _, err := c.ReadMsgUnix(make([]byte, 1), oob)
	if err != nil {
		return -1, err
	}
	fd = Descriptor(oob[:n])
	switch {
	case fd >= 0:
		return fd, nil
	case flags&unix.MSG_CTRUNC != 0:
		return -1, fmt.Errorf("%w: the descriptor was lost", syscall.EMFILE)
	}
	return -1, fmt.Errorf("%w: no descriptor has come", syscall.EPROTO)
}

// Descriptor returns the descriptor in the control messages that came with bytes, or -1. It closes all others.
func Descriptor(oob []byte) int {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil || len(messages) == 0 {
		return -1
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) == 0 {
		return -1
	}
	for _, extra := range fds[1:] {
		unix.Close(extra)
	}
	return fds[0]
}
