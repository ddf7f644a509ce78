//go:build linux && cgo

package rc_test

import (
	"bytes"
	"errors"
	"net/netip"
	"testing"

	"pinwheel/mem"
	"pinwheel/verbs"
	"pinwheel/verbs/rdma/rc"
	"pinwheel/verbs/rdma/rdmatest"
	"pinwheel/verbs/verbstest"
)

// inline is how many bytes queue pairs of introduced copy at once.
const inline = 64

// introduced connects two queue pairs by their endpoints. The second side has a
// protection domain of its own.
func introduced(t *testing.T, rights [2]verbs.Access) (a, b end) {
	t.Helper()
	var ends [2]end
	for i, r := range rights {
		p := rdmatest.Open(t)
		c, err := rc.New(p, netip.Addr{}, rc.Options{Depth: 16, Rights: r, Inline: inline})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
		ends[i] = end{c, p}
	}
	for i := range ends {
		if err := ends[i].Ready(ends[1-i].Endpoint()); err != nil {
			t.Fatal(err)
		}
	}
	return ends[0], ends[1]
}

// TestExactRegionsReachNoOtherByte: what lies on the same pages is out of reach, and
// so is what another protection domain holds.
func TestExactRegionsReachNoOtherByte(t *testing.T) {
	const at, n = 1001, 3000
	for _, c := range []struct {
		name          string
		offset, bytes int
		another       bool // domain
		want          rc.Status
	}{
		{name: "all of it", bytes: n, want: rc.StatusSuccess},
		{name: "the last byte", offset: n - 1, bytes: 1, want: rc.StatusSuccess},
		{name: "a byte beyond", offset: n, bytes: 1, want: rc.StatusRemoteAccess},
		{name: "a byte too many", bytes: n + 1, want: rc.StatusRemoteAccess},
		{name: "a byte before", offset: -1, bytes: 1, want: rc.StatusRemoteAccess},
		{name: "a key of another domain", bytes: 1, another: true, want: rc.StatusRemoteAccess},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := introduced(t, [2]verbs.Access{rc.NoRights, verbs.AccessRemoteWrite})
			here := newBuffer(t, a.p, 2*mem.PageSize)
			memory, r := verbstest.Map(t, 2*mem.PageSize)
			set(memory, oldByte)
			p := b.p
			if c.another {
				p = rdmatest.Open(t)
			}
			g, err := p.RegisterExact(part(r, at, n), verbs.AccessLocalWrite|verbs.AccessRemoteWrite)
			if err != nil {
				t.Fatal(err)
			}
			if g.Range != part(r, at, n) || p.Usage().PinnedBytes != int64(mem.PageSize) {
				t.Errorf("registered %+v, which pins %d bytes", g, p.Usage().PinnedBytes)
			}
			l := rc.Local{Range: part(here.g.Range, 0, uint64(c.bytes)), LKey: here.g.LKey}
			to := rc.Remote{Addr: uint64(int(g.Range.Start) + c.offset), RKey: g.RKey}
			if err := a.Write(1, l, to); err != nil {
				t.Fatal(err)
			}
			if got := await(t, a.Conn); got.Status != c.want {
				t.Errorf("completed with %q, want %q", got.Status, c.want)
			}
			want := bytes.Repeat([]byte{oldByte}, int(r.Len()))
			if c.want == rc.StatusSuccess {
				copy(want[at+c.offset:], here.b[:c.bytes])
			}
			if !bytes.Equal(memory, want) {
				t.Error("other bytes were written")
			}
		})
	}
}

// TestOwnerLearnsOfAnAccessError: a receive that nobody serves ends with the queue pair.
func TestOwnerLearnsOfAnAccessError(t *testing.T) {
	a, b := introduced(t, [2]verbs.Access{rc.NoRights, verbs.AccessRemoteWrite})
	here := newBuffer(t, a.p, mem.PageSize)
	if err := b.Receive(7, rc.Local{}); err != nil {
		t.Fatal(err)
	}
	if err := a.Write(1, here.local(), rc.Remote{Addr: 4096, RKey: 12345}); err != nil {
		t.Fatal(err)
	}
	if got := await(t, a.Conn); got.Status != rc.StatusRemoteAccess {
		t.Errorf("completed with %q", got.Status)
	}
	if got := await(t, b.Conn); got.ID != 7 || got.Status != rc.StatusFlushed {
		t.Errorf("the owner got %+v", got)
	}
}

func TestFailEndsWhatIsOutstanding(t *testing.T) {
	a, _ := introduced(t, [2]verbs.Access{rc.NoRights, verbs.AccessRemoteWrite})
	if err := a.Receive(1, rc.Local{}); err != nil {
		t.Fatal(err)
	}
	a.Fail()
	if got := await(t, a.Conn); got.Status != rc.StatusFlushed {
		t.Errorf("completed with %q", got.Status)
	}
	var got [1]rc.Completion
	if n, err := a.Wait(patience(t), got[:]); n != 0 || !errors.Is(err, rc.ErrPeerGone) {
		t.Errorf("Wait = %d, %v", n, err)
	}
	if err := a.Ready([]byte("GET / HTTP/1.1")); err == nil {
		t.Error("a stranger's endpoint was taken")
	}
}

// TestInlineWriteNeedsNoKeyNorItsSource: what is longer does, and what is not to be inline.
func TestInlineWriteNeedsNoKeyNorItsSource(t *testing.T) {
	for what, l := range map[string]rc.Local{
		"longer":     {Range: mem.Range{End: inline + 1}, Inline: true},
		"not inline": {Range: mem.Range{End: inline}},
	} {
		t.Run(what, func(t *testing.T) {
			a, b := introduced(t, [2]verbs.Access{rc.NoRights, verbs.AccessRemoteWrite})
			if a.MaxInline() == 0 {
				t.Skip("this device copies nothing when it is posted")
			}
			if a.MaxInline() != inline {
				t.Fatalf("%d bytes can be inline, %d were asked for", a.MaxInline(), inline)
			}
			there := newBuffer(t, b.p, mem.PageSize)
			memory, r := verbstest.Map(t, mem.PageSize) // not registered
			set(memory, newByte)
			if err := a.Write(1, rc.Local{Range: part(r, 0, inline), Inline: true}, there.remote()); err != nil {
				t.Fatal(err)
			}
			set(memory, oldByte)
			if got := await(t, a.Conn); got.ID != 1 || got.Status != rc.StatusSuccess {
				t.Errorf("completed with %+v", got)
			}
			if want := bytes.Repeat([]byte{newByte}, inline); !bytes.Equal(there.b[:inline], want) {
				t.Errorf("%q arrived", there.b[:inline])
			}
			l.Range = part(r, 0, l.Range.Len())
			if err := a.Write(2, l, there.remote()); err != nil {
				t.Fatal(err)
			}
			if got := await(t, a.Conn); got.Status == rc.StatusSuccess {
				t.Error("one without a key succeeded")
			}
		})
	}
}
