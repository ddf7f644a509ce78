package files

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"pinwheel/comm/files/internal/wire"
	"pinwheel/internal/unixsocket"
)

// alsoElsewhere tells whether some who reach a node by this address may be on other machines.
func alsoElsewhere(address string) bool { return !strings.HasPrefix(address, "unix:") }

// alsoHere tells whether some who reach a node by this address have shared memory with it. With a name at the broker,
// some do, and others come from other machines.
func alsoHere(address string) bool { return !strings.HasPrefix(address, "tcp:") }

// listenLocal listens for clients on this machine if the node does. They may have descriptors of the files that they
// read: then the kernel copies a file once, and not into a window and out of it. The socket is abstract (unix(7)), so
// it leaves nothing behind. Who can't reach it, as from another network namespace, has a window. So has another user: a
// descriptor stays good for as long as its owner likes, whatever becomes of permissions.
func listenLocal(addresses []string, warn func(string)) *dataListener {
	if !slices.ContainsFunc(addresses, alsoHere) {
		return nil
	}
	d, err := listenData("unix", "@pinwheel-files-"+rand.Text())
	if err != nil {
		warn(fmt.Sprintf("%v: clients on this machine will take longer", err))
		return nil
	}
	return d
}

// ownPeer returns who is at the other end of a connection. It fails if that is not the user of this process.
func ownPeer(c *net.UnixConn) (*unix.Ucred, error) {
	who, err := unixsocket.Peer(c)
	if err == nil && int(who.Uid) != os.Geteuid() {
		err = fmt.Errorf("%w: the other end is of user %d", syscall.EACCES, who.Uid)
	}
	return who, err
}

// descriptor sends a descriptor of a file. It is a new one: a client that changes its flags changes none of ours.
func (v *session) descriptor(ctx context.Context, q *wire.Descriptor) (wire.Message, error) {
	f, err := find[*served](&v.handles, q.Handle)
	if err != nil {
		return nil, err
	}
	c, conn, err := v.dataConn(ctx, q.Conn)
	if err != nil {
		return nil, err
	}
	defer c.using.Unlock()
	to, ok := conn.(*net.UnixConn)
	if !ok {
		return nil, fmt.Errorf("%w: no Unix socket", syscall.EINVAL)
	}
	if err := v.allowed(Read, f.name); err != nil {
		return nil, err
	}
	again, err := v.openRegular(f.name)
	if err != nil {
		return nil, err
	}
	defer again.close()
	if !f.is(again.stamp) {
		return nil, ErrChanged
	}
	if err := to.SetWriteDeadline(time.Now().Add(enterTime)); err != nil {
		return nil, err
	}
	if _, _, err := to.WriteMsgUnix([]byte{0}, unix.UnixRights(int(again.file.Fd())), nil); err != nil {
		c.close()
		return nil, err
	}
	return &wire.Empty{}, nil
}

// taken counts what a client has read through a descriptor. It fails if the file has changed.
func (v *session) taken(_ context.Context, q *wire.Taken) (wire.Message, error) {
	f, err := find[*served](&v.handles, q.Handle)
	if err != nil {
		return nil, err
	}
	if err := f.unchanged(); err != nil {
		return nil, err
	}
	n := min(q.Bytes, wire.MaxRead)
	v.counters.shared.Add(n)
	return &wire.Moved{Bytes: n, Way: ByMemory}, nil
}
