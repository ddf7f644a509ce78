package main

import (
	"errors"
	"fmt"
	"net"
	"syscall"
	"testing"

	"pinwheel/comm/files"
)

// An error of a lost connection says what is of use, and of no socket. It loses nothing that was joined to it.
func TestFaultOfALostServer(t *testing.T) {
	lost := func(err error) error {
		return fmt.Errorf("get: %w", fmt.Errorf("%w: %w", files.ErrPeerGone, &net.OpError{Op: "read", Net: "tcp", Err: err}))
	}
	const hint = "server:7400: is pinwheel serve still running there? "
	for _, c := range []struct {
		err  error
		want string
	}{
		{syscall.ENOSPC, "no space left on device"},
		{files.ErrPeerGone, hint + "vmmc: peer gone"},
		{lost(syscall.ECONNRESET), hint + "connection reset by peer"},
		{fmt.Errorf("read f: %w for 5s", files.ErrNoRDMA), "server:7400: read f: files: no RDMA for 5s: see pinwheel doctor " +
			"at both ends, or let both take --transport auto"},
		{errors.Join(lost(syscall.EPIPE), syscall.ENOSPC), hint + "broken pipe\nno space left on device"},
		{fmt.Errorf("copy: %w", errors.Join(syscall.ENOSPC, lost(syscall.EPIPE))),
			"no space left on device\n" + hint + "broken pipe"},
	} {
		if got := callFault("tcp:server:7400", c.err); got.Error() != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
