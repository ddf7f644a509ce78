package files

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"pinwheel/comm/files/internal/wire"
	"pinwheel/comm/vmmc"
	"pinwheel/comm/vmmc/rpc"
	"pinwheel/comm/vmmc/stream"
	"pinwheel/internal/testwait"
)

// liar serves answers that are the same whatever is asked, until the test ends.
func liar(t *testing.T, w way, answers map[uint32]wire.Message) *Client {
	t.Helper()
	return w.liarAt(t, openNode(t, withWarn(w.node(t, "server"))), answers)
}

func (w way) liarAt(t *testing.T, n *vmmc.Node, answers map[uint32]wire.Message) *Client {
	t.Helper()
	testwait.Bound(t)
	l, err := stream.Listen(n, DefaultService, streamOptions(everybody, "", nil))
	if err != nil {
		t.Fatal(err)
	}
	s := rpc.NewServer(rpcOptions())
	all := map[uint32]wire.Message{
		wire.ProcHello:  &wire.Welcome{Version: wire.Version, Calls: 8, Writable: true},
		wire.ProcWindow: &wire.Target{Handle: 1, Way: ByTLS}, wire.ProcClose: &wire.Empty{}, wire.ProcAbort: &wire.Empty{},
		wire.ProcOpen: &wire.Opened{Handle: 2, Info: wire.Info{Name: "f", Size: liarBytes, Mode: 0o644, Allocated: liarBytes}},
	}
	for procedure, a := range answers {
		all[procedure] = a
	}
	for procedure, a := range all {
		answer := wire.Append(wire.Append(nil, &wire.Status{}), a) // once: calls run at the same time
		s.Handle(procedure, func(_ context.Context, _, reply []byte) ([]byte, error) {
			return append(reply, answer...), nil
		}, rpc.Waits)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	t.Cleanup(func() {
		_ = errors.Join(s.Close(), l.Close()) // one may close what the other has closed
		testwait.Receive(t, "the end of the liar", ended)
	})
	c, err := Dial(testContext(t), openNode(t, withWarn(w.node(t, "client"))), n.Addresses()[0],
		ClientOptions{Peers: everybody})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

const liarBytes = 1 << 20

// A server that lies costs its client an error, and no more.
func TestServerThatLies(t *testing.T) {
	small := wire.Info{Name: "f", Size: 1}
	for what, lie := range map[string]struct {
		answers map[uint32]wire.Message
		ask     func(t *testing.T, c *Client) error
		want    error
	}{
		"fewer bytes than the file has": {map[uint32]wire.Message{wire.ProcRead: &wire.Moved{Bytes: 1}}, wholeOf, ErrChanged},
		"other content than it has": {
			map[uint32]wire.Message{wire.ProcRead: &wire.Moved{Bytes: 1 << 62, Way: "none"}, wire.ProcSum: &wire.Sum{}},
			func(t *testing.T, c *Client) error {
				if err := wholeOf(t, c); err != nil {
					return err
				}
				b, err := open(t, c, "f").Checksum(testContext(t), SHA256, 0, liarBytes)
				if err == nil && !bytes.Equal(b, sum(t, SHA256, make([]byte, liarBytes))) {
					err = ErrChecksum
				}
				return err
			}, ErrChecksum,
		},
		"more bytes in an answer than were asked for": {
			map[uint32]wire.Message{wire.ProcRead: &wire.Moved{Bytes: 5, Content: []byte("xxxxx")}},
			func(t *testing.T, c *Client) error {
				_, err := open(t, c, "f").ReadAt(testContext(t), make([]byte, 4), 0)
				return err
			}, ErrProtocol,
		},
		"data behind the end": {
			map[uint32]wire.Message{wire.ProcExtents: &wire.Extents{Extents: []wire.Extent{{Off: 1, Len: 1 << 62}}, Until: 1 << 62}},
			dataOf, ErrProtocol,
		},
		"data that goes back": {
			map[uint32]wire.Message{wire.ProcExtents: &wire.Extents{Extents: []wire.Extent{{Off: 9, Len: 9}, {Len: 1}}, Until: 20}},
			dataOf, ErrProtocol,
		},
		"holes without an end": {map[uint32]wire.Message{wire.ProcExtents: &wire.Extents{}}, dataOf, ErrProtocol},
		"answers to no name": {
			map[uint32]wire.Message{wire.ProcReadMany: &wire.Contents{Files: []wire.Content{{Info: small}, {Info: small}}}},
			manyOf, ErrProtocol,
		},
		"no answer": {map[uint32]wire.Message{wire.ProcReadMany: &wire.Contents{}}, manyOf, ErrProtocol},
		"a wrong checksum": {
			map[uint32]wire.Message{wire.ProcReadMany: &wire.Contents{Files: []wire.Content{
				{Info: small, Content: []byte("x"), Sum: []byte{1}},
			}}},
			manyOf, ErrChecksum,
		},
		"a name elsewhere": {
			map[uint32]wire.Message{wire.ProcList: &wire.Page{Entries: []wire.Info{{Name: ".."}}}},
			func(t *testing.T, c *Client) error { return second(c.ReadDir(testContext(t), ".")) }, ErrProtocol,
		},
		"staging memory that there is not": {
			map[uint32]wire.Message{wire.ProcCreate: &wire.Created{Handle: 3}, wire.ProcStaging: &wire.Window{Export: 7, Bytes: 1 << 62}},
			func(t *testing.T, c *Client) error {
				ctx, cancel := context.WithCancel(testContext(t))
				cancel()
				_, err := create(t, c, "f", CreateOptions{}).WriteAt(ctx, []byte("x"), 0)
				return err
			}, context.Canceled,
		},
	} {
		t.Run(what, func(t *testing.T) {
			if err := lie.ask(t, liar(t, ways[0], lie.answers)); !errors.Is(err, lie.want) {
				t.Errorf("%v, not %v", err, lie.want)
			}
		})
	}
}

func wholeOf(t *testing.T, c *Client) error {
	return second(open(t, c, "f").CopyRange(testContext(t), io.Discard, 0, liarBytes))
}

func dataOf(t *testing.T, c *Client) error {
	for _, err := range open(t, c, "f").Data(testContext(t), 0) {
		if err != nil {
			return err
		}
	}
	return nil
}

func manyOf(t *testing.T, c *Client) error {
	return c.ReadMany(testContext(t), []string{"f"}, CRC32C, func(_ int, _ Info, _ []byte, err error) error { return err })
}

// A client that does not trust the network is not talked into bytes without encryption.
func TestClientWithoutTrustTakesNoDataPort(t *testing.T) {
	c := liar(t, ways[1], map[uint32]wire.Message{
		wire.ProcHello: &wire.Welcome{Version: wire.Version, Calls: 8, DataPort: 1},
	})
	if c.Transport() != ByTLS {
		t.Errorf("bytes would come by %s", c.Transport())
	}
}

// What the server has not written is not counted as written.
func TestServerThatWritesLittle(t *testing.T) {
	n := openNode(t, withWarn(ways[0].node(t, "server")))
	id, _, _, err := export(n, stagingBytes, everybody)
	if err != nil {
		t.Fatal(err)
	}
	c := ways[0].liarAt(t, n, map[uint32]wire.Message{
		wire.ProcCreate: &wire.Created{Handle: 3}, wire.ProcStaging: &wire.Window{Export: id, Bytes: stagingBytes},
		wire.ProcWrite: &wire.Moved{Bytes: 5},
	})
	k, err := create(t, c, "f", CreateOptions{}).WriteAt(testContext(t), make([]byte, 3*stagingBytes), 0)
	if k != 5 || !errors.Is(err, ErrProtocol) {
		t.Errorf("%d, %v", k, err)
	}
}
