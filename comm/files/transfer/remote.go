package transfer

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"path"
	"strings"

	"pinwheel/comm/files"
)

// ParseRemote takes apart what a user writes for a file of a server: HOST:PORT/PATH, tcp:HOST:PORT/PATH,
// unix:SOCKET:/PATH or node:NAME:/PATH. Without a PATH it is the directory that is served. address is one of package
// vmmc; name is for Get and Put, and keeps a slash at its end.
func ParseRemote(s string) (address, name string, err error) {
	network, rest, _ := strings.Cut(s, ":")
	switch network {
	case "unix", "node":
		at, name, _ := strings.Cut(rest, ":/")
		if at == "" || network == "node" && strings.Contains(at, "@") {
			break
		}
		return network + ":" + at, name, nil
	case "tcp":
	default:
		rest = s
	}
	if network != "unix" && network != "node" {
		at, name, _ := strings.Cut(rest, "/")
		if host, port, err := net.SplitHostPort(at); err == nil && host != "" && port != "" {
			return "tcp:" + at, name, nil
		}
	}
	return "", "", fmt.Errorf("%q: write HOST:PORT/PATH, unix:SOCKET:/PATH, or node:NAME:/PATH for a name at the broker "+
		"of this machine", s)
}

// remoteName makes a name of the server of what a user wrote. It never leads out of the directory that is served.
func remoteName(s string) string {
	return cmp.Or(strings.TrimPrefix(path.Clean("/"+s), "/"), ".")
}

// List describes what a directory of a server has, sorted by name, or a file.
func List(ctx context.Context, c *files.Client, name string) ([]files.Info, error) {
	name = remoteName(name)
	info, err := c.Stat(ctx, name)
	if err != nil || !info.IsDir() {
		return []files.Info{info}, err
	}
	return c.ReadDir(ctx, name)
}
