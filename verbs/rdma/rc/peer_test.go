//go:build linux && cgo

package rc_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"testing"

	"pinwheel/internal/testwait"
	"pinwheel/mem"
	"pinwheel/verbs"
	"pinwheel/verbs/rdma"
	"pinwheel/verbs/rdma/arena"
	"pinwheel/verbs/rdma/rc"
	"pinwheel/verbs/rdma/rdmatest"
	"pinwheel/verbs/verbstest"
)

// alone returns a provider and a socket at whose other end nobody answers.
func alone(t *testing.T) (*rdma.Provider, net.Conn) {
	t.Helper()
	p := rdmatest.Open(t)
	here, there := net.Pipe()
	t.Cleanup(func() { _ = there.Close() })
	return p, here
}

// victimEnv is the address that a child process connects to, to be killed there.
const victimEnv = "PINWHEEL_RC_VICTIM"

// victim connects, registers memory, and receives into it until it is killed.
// It tells its peer by a first message, and its parent by a character, that it is ready.
func victim(addr string) {
	fail := func(err error) {
		if err != nil {
			println("victim:", err.Error())
			os.Exit(1)
		}
	}
	sock, err := dial(addr)
	fail(err)
	p, err := rdma.Open(rdma.Options{})
	fail(err)
	c, err := rc.Connect(context.Background(), sock, p, rc.Options{})
	fail(err)
	memory, err := arena.New(1 << 20)
	fail(err)
	_, r, err := memory.Alloc(1 << 20)
	fail(err)
	g, err := p.Register(r, both)
	fail(err)
	fail(c.Send(0, rc.Local{Range: part(r, 0, mem.PageSize), LKey: g.LKey}))
	fmt.Print(".") // to the parent
	select {}
}

// TestKilledPeerLeavesNothing: SIGKILL of the peer ends what is outstanding at
// once, and neither side keeps memory pinned.
func TestKilledPeerLeavesNothing(t *testing.T) {
	p := rdmatest.Open(t)
	before := footprintOf(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), victimEnv+"="+listener.Addr().String())
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	killed := false
	defer func() {
		if !killed {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	}()
	sock, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	c := connect(t, sock, p)
	if c == nil {
		t.FailNow()
	}
	here := newBuffer(t, p, 1<<20)
	must(t, c, c.Receive(1, here.local()))
	if pinned, err := rdmatest.PinnedBytes(cmd.Process.Pid); pinned != 1<<20 {
		t.Errorf("the victim has %d bytes pinned, not 1 MiB (%v)", pinned, err)
	}

	// Receives that nobody will serve are outstanding when it dies.
	const outstanding = 10
	for i := range uint64(outstanding) {
		if err := c.Receive(i, here.local()); err != nil {
			t.Fatal(err)
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // "signal: killed"
	killed = true
	leavesNothing(t, c, p, outstanding, before)
}

// footprint is what this process has pinned, and how many regions all processes have on the device.
type footprint struct {
	pinned  int64
	regions int
}

func footprintOf(t *testing.T) footprint {
	t.Helper()
	return footprint{verbstest.StatusBytes(t, "VmPin"), rdmatest.DeviceRegions(t)}
}

// leavesNothing checks what becomes of a connection whose peer is gone, with requests outstanding, and of its provider:
// both close, and nothing is left of what they had. Other processes may come and go meanwhile.
func leavesNothing(t *testing.T, c *rc.Conn, p *rdma.Provider, outstanding int, before footprint) {
	t.Helper()
	for range outstanding {
		if got := await(t, c); got.Status != rc.StatusFlushed {
			t.Errorf("outstanding request completed with %q", got.Status)
		}
	}
	var got [1]rc.Completion
	if _, err := c.Wait(patience(t), got[:]); !errors.Is(err, rc.ErrPeerGone) {
		t.Errorf("Wait says %v, want ErrPeerGone", err)
	}

	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if after := verbstest.StatusBytes(t, "VmPin"); after != before.pinned {
		t.Errorf("VmPin is %d bytes after Close, was %d", after, before.pinned)
	}
	testwait.Until(t, "no more memory regions on the device than before",
		func() bool { return rdmatest.DeviceRegions(t) <= before.regions })
}

// TestPanicLeavesNothing: the deferred closes of a program that panics with
// requests outstanding unpin everything.
func TestPanicLeavesNothing(t *testing.T) {
	rdmatest.Need(t)
	before := verbstest.StatusBytes(t, "VmPin")
	func() {
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		p, err := rdma.Open(rdma.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		here, there := net.Pipe()
		other := make(chan *rc.Conn)
		go func() {
			c, err := rc.Connect(patience(t), there, p, rc.Options{})
			if err != nil {
				t.Error(err)
			}
			other <- c
		}()
		c, err := rc.Connect(patience(t), here, p, rc.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		defer (<-other).Close()
		_, r := verbstest.Map(t, 1<<20)
		g, err := p.Register(r, verbs.AccessLocalWrite)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Receive(1, rc.Local{Range: r, LKey: g.LKey}); err != nil {
			t.Fatal(err)
		}
		if pinned := verbstest.StatusBytes(t, "VmPin"); pinned != before+1<<20 {
			t.Errorf("VmPin is %d while registered, was %d", pinned, before)
		}
		panic("user code")
	}()
	if after := verbstest.StatusBytes(t, "VmPin"); after != before {
		t.Errorf("VmPin is %d bytes after the panic, was %d", after, before)
	}
}
