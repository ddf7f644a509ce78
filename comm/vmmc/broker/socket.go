package broker

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"pinwheel/comm/vmmc/internal/identity"
	"pinwheel/internal/unixsocket"
)

// SystemSocket is where the broker of all users listens.
const SystemSocket = "/run/pinwheel/node"

// ownSocket is the name of that of one user, in RuntimeDir.
const ownSocket = "pinwheel-node"

// RuntimeDir is the directory of this user for sockets and secrets of this boot: $XDG_RUNTIME_DIR, or else one in
// os.TempDir, which it makes, and which nobody else may have made before.
func RuntimeDir() (string, error) {
	dir := runtimeDir()
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	if os.Getenv("XDG_RUNTIME_DIR") != "" {
		return dir, nil
	}
	return dir, identity.CheckOwn(dir)
}

func runtimeDir() string {
	return cmp.Or(os.Getenv("XDG_RUNTIME_DIR"), filepath.Join(os.TempDir(), fmt.Sprintf("pinwheel-%d", os.Geteuid())))
}

// Socket is where clients of this user find a broker: pinwheel-node in RuntimeDir, if that is there, or else
// SystemSocket, if that is there.
func Socket() string { return socketOr(SystemSocket) }

func socketOr(system string) string {
	own := filepath.Join(runtimeDir(), ownSocket)
	_, err := os.Stat(own)
	if err == nil && os.Getenv("XDG_RUNTIME_DIR") == "" {
		err = identity.CheckOwn(runtimeDir()) // whoever has made it can't keep this user from the broker of all users
	}
	if err != nil {
		if _, err := os.Stat(system); err == nil {
			return system
		}
	}
	return own
}

// ServerSocket is where a broker listens that Socket finds. It makes the directory of that for all users.
func ServerSocket(allUsers bool) (string, error) {
	if allUsers {
		return SystemSocket, os.MkdirAll(filepath.Dir(SystemSocket), 0o755)
	}
	dir, err := RuntimeDir()
	return filepath.Join(dir, ownSocket), err
}

// Listen makes the socket of a broker. Only with allUsers may other users connect.
func Listen(path string, allUsers bool) (net.Listener, error) {
	mode := fs.FileMode(0o600) // until then, Serve refuses other users
	if allUsers {
		mode = 0o666
	}
	l, err := unixsocket.ListenMode("unixpacket", path, mode)
	if err != nil {
		return nil, err // not a nil Listener in an interface
	}
	return l, nil
}

// Activated returns the socket that systemd opened for this process (sd_listen_fds(3)), or nil.
func Activated() (*net.UnixListener, error) {
	pid, fds := os.Getenv("LISTEN_PID"), os.Getenv("LISTEN_FDS")
	if pid != strconv.Itoa(os.Getpid()) {
		return nil, nil
	}
	os.Unsetenv("LISTEN_PID")
	os.Unsetenv("LISTEN_FDS")
	if fds != "1" {
		return nil, fmt.Errorf("broker: systemd gave %s sockets: it must be one", fds)
	}
	const first = 3 // SD_LISTEN_FDS_START, sd-daemon.h
	f := os.NewFile(first, "LISTEN_FD_3")
	defer f.Close()
	l, err := net.FileListener(f)
	if err != nil {
		return nil, fmt.Errorf("broker: the socket of systemd: %w", err)
	}
	u, ok := l.(*net.UnixListener)
	if !ok || u.Addr().Network() != "unixpacket" {
		l.Close()
		return nil, fmt.Errorf("broker: the socket of systemd is %s: it must be ListenSequentialPacket=", l.Addr().Network())
	}
	return u, nil
}
