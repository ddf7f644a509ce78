package vmmc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pinwheel/comm/vmmc/broker"
	"pinwheel/internal/testwait"
	"pinwheel/verbs/verbstest"
)

// exporterSteps are what an exporter does, one after the other, while an importer does what waiters do. After some of
// them a notification waits for a credit.
var exporterSteps = []struct {
	name   string
	queues bool
	do     func(x *exporterProcess) error
}{
	{"it listens", false, func(*exporterProcess) error { return nil }},
	{"it exports", false, func(x *exporterProcess) (err error) {
		if x.memory, err = x.node.Alloc(1 << 16); err != nil {
			return err
		}
		if x.e, err = x.node.Export(1, x.memory, sender, ExportOptions{Queue: 1}); err == nil {
			x.e.Block()
		}
		return err
	}},
	{"messages arrive", true, func(x *exporterProcess) error {
		for wordAt(x.memory, 0).Load() == 0 {
			time.Sleep(100 * time.Microsecond)
		}
		return nil
	}},
	{"stores arrive", true, func(x *exporterProcess) error {
		for wordAt(x.memory, pageBytes).Load() == 0 {
			time.Sleep(100 * time.Microsecond)
		}
		return nil
	}},
	{"it has taken a notification, and the next waits", true, func(x *exporterProcess) error {
		_, err := x.e.Wait(context.Background())
		return err
	}},
	{"it unexports", false, func(x *exporterProcess) error {
		go x.e.UnexportAsync()
		return nil
	}},
	{"it closes", false, func(x *exporterProcess) error {
		go x.node.Close()
		return nil
	}},
}

// exporterProcess does them.
type exporterProcess struct {
	node   *Node
	memory []byte
	e      *Export
}

// exporterStepsProcess writes its address into a file, does the first steps, writes another file, and waits to be
// killed. Its bufferID is their number and a transport.
func exporterStepsProcess(bufferID, dir string) {
	fail := func(err error) {
		if err != nil {
			fmt.Println("exporter", bufferID, err)
			os.Exit(1)
		}
	}
	number, over, _ := strings.Cut(bufferID, " ")
	steps, err := strconv.Atoi(number)
	fail(err)
	o := Options{Name: "receiver", Token: testToken, NoRDMA: over != "rdma", Warn: quiet}
	if o.Listen = []string{loopbackPort(nil)}; over == "shared memory" {
		o.Listen = []string{"unix:" + filepath.Join(dir, "receiver")}
	}
	x := &exporterProcess{}
	x.node, err = Open(o)
	fail(err)
	fail(os.WriteFile(filepath.Join(dir, "address"), []byte(x.node.Addresses()[0]), 0o600))
	go func() {
		for _, step := range exporterSteps[:steps] {
			fail(step.do(x))
		}
		fail(os.WriteFile(filepath.Join(dir, "done"), nil, 0o600))
	}()
	testwait.Ready()
}

// waiters are all that an importer can wait for, of an export that it has asked for. Each returns an error as soon as the
// exporter has gone.
var waiters = []struct {
	what   string
	export uint32
	wait   func(i *Import) error
}{
	{"an import of what is not exported", 99, func(i *Import) error { return errors.New("it was granted") }},
	{"messages", 1, func(i *Import) error {
		return i.Send(context.Background(), []byte("messages"), 0, SendOptions{})
	}},
	{"notifications", 1, func(i *Import) error {
		op, err := i.SendAsync([]byte("n"), 8, SendOptions{Notify: true})
		if err != nil {
			return err
		}
		return op.Wait(context.Background())
	}},
	{"automatic update", 1, func(i *Import) error {
		local, err := i.Node().Alloc(uint64(pageBytes))
		if err != nil {
			return err
		}
		m, err := i.Map(uint64(pageBytes), local, MapOptions{})
		for k := uint64(1); err == nil; k++ {
			wordAt(local, 0).Store(k)
			err = m.Flush(context.Background())
		}
		return err
	}},
}

// Whenever an exporter is killed, all who wait for it hear of that before its heartbeat is due.
func TestExporterIsKilledAtEachStep(t *testing.T) {
	for _, tr := range []transport{transportOf(t, "shared memory"), transportOf(t, "tcp with token"), overRDMA(t)} {
		t.Run(tr.name, func(t *testing.T) {
			for k, step := range exporterSteps {
				t.Run(step.name, func(t *testing.T) { exporterDies(t, tr, k+1) })
			}
		})
	}
}

func exporterDies(t *testing.T, tr transport, steps int) {
	testwait.Bound(t)
	pinned := verbstest.StatusBytes(t, "VmPin")
	dir := peerDir(t)
	o := tr.options(t, "sender")
	_, kill := testwait.Peer(t, fmt.Sprintf("VMMC_TEST_PEER=exporting %d %s", steps, tr.name))
	address, err := os.ReadFile(filepath.Join(dir, "address"))
	if err != nil {
		t.Fatal(err)
	}
	o.Warn, o.Heartbeat = quiet, 2*testwait.Limit // who waits for that takes too long
	n := openNode(t, o)
	var asked []*Import
	for _, w := range waiters {
		i, err := n.ask(testContext(t), w.export, string(address))
		if err != nil {
			t.Fatal(err)
		}
		asked = append(asked, i)
	}
	ends := make([]chan error, len(waiters))
	for k, w := range waiters {
		i := asked[k]
		ends[k] = make(chan error, 1)
		go func() {
			<-i.ready
			i.AwaitRDMA(context.Background()) // if that is the transport
			err := i.Err()
			for err == nil {
				err = w.wait(i)
			}
			ends[k] <- err
		}()
	}
	testwait.Until(t, "the exporter has done its steps", func() bool {
		_, err := os.Stat(filepath.Join(dir, "done"))
		return err == nil
	})
	if exporterSteps[steps-1].queues {
		testwait.Until(t, "a notification waits", func() bool {
			return slices.ContainsFunc(n.Stats().Imports, func(i broker.ImportStats) bool { return i.Queued > 0 })
		})
	}
	kill()
	for k, w := range waiters {
		err := testwait.Receive(t, w.what, ends[k])
		if !errors.Is(err, ErrPeerGone) && !errors.Is(err, ErrUnexported) {
			t.Errorf("%s: %v", w.what, err)
		}
	}
	if err := n.Close(); err != nil {
		t.Error(err)
	}
	if after := verbstest.StatusBytes(t, "VmPin"); after != pinned {
		t.Errorf("VmPin is %d after Close, was %d", after, pinned)
	}
}
