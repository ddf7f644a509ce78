// Package unixsocket listens on Unix sockets that have a path, and knows who connects.
package unixsocket

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Listen listens on a path; network is unix or unixpacket. It replaces the socket of a process that was
// killed: one that nobody listens on any more.
func Listen(network, path string) (*net.UnixListener, error) {
	a := &net.UnixAddr{Net: network, Name: path}
	l, err := net.ListenUnix(network, a)
	if !errors.Is(err, syscall.EADDRINUSE) || !abandoned(path) {
		return l, err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return net.ListenUnix(network, a)
}

// abandoned tells whether a path is a socket that nobody listens on. A listener of another type than that of
// the attempt answers EPROTOTYPE.
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
