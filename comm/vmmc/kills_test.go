package vmmc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"pinwheel/comm/vmmc/broker"
	"pinwheel/internal/testwait"
	"pinwheel/verbs/rdma/rdmatest"
)

// importerSteps are what an importer does, one after the other. Export 1 has a queue of one notification, which nobody
// takes.
var importerSteps = []struct {
	name string
	do   func(s *steps) error
}{
	{"it is connected and waits for an export", func(s *steps) error {
		h := s.node.ImportAsync(99, s.address)
		i, err := s.node.Import(context.Background(), 2, s.address)
		if err != nil {
			return err
		}
		i.Unimport()
		select {
		case <-h.Done():
			return errors.New("there is no export 99")
		default:
			return nil
		}
	}},
	{"it has an import", func(s *steps) (err error) {
		s.i, err = s.node.Import(context.Background(), 1, s.address)
		if err == nil && s.rdma && !s.i.AwaitRDMA(context.Background()) {
			err = errors.New("messages do not go by RDMA")
		}
		return err
	}},
	{"it has sent a message", func(s *steps) error {
		return s.i.Send(context.Background(), []byte("s"), 0, SendOptions{})
	}},
	{"its messages are on their way", func(s *steps) error {
		src := make([]byte, s.i.Bytes())
		for range 20 {
			if _, err := s.i.SendAsync(src[:len(src)-1], 1, SendOptions{}); err != nil {
				return err
			}
		}
		return nil
	}},
	{"it waits for a credit", func(s *steps) error {
		for range 3 {
			if _, err := s.i.SendAsync([]byte("n"), 0, SendOptions{Notify: true}); err != nil {
				return err
			}
		}
		return nil
	}},
	{"its stores are being sent", func(s *steps) error {
		local, err := s.node.Alloc(1 << 16)
		if err != nil {
			return err
		}
		m, err := s.i.Map(0, local, MapOptions{})
		if err != nil {
			return err
		}
		for k := range local {
			local[k]++
		}
		go func() { _ = m.Flush(context.Background()) }()
		return nil
	}},
	{"it gives the import back", func(s *steps) error {
		go s.i.Unimport()
		return nil
	}},
	{"it closes", func(s *steps) error {
		go s.node.Close()
		return nil
	}},
}

// steps is the process that does them.
type steps struct {
	node    *Node
	address string
	rdma    bool // it waits for RDMA
	i       *Import
}

// stepsProcess does the first steps and waits to be killed. Its bufferID is their number, and "rdma" before that.
func stepsProcess(bufferID, dir string) {
	fail := func(err error) {
		if err != nil {
			fmt.Println("step", bufferID, err)
			os.Exit(1)
		}
	}
	number, rdma := strings.CutPrefix(bufferID, "rdma ")
	n, err := strconv.Atoi(number)
	fail(err)
	address, err := os.ReadFile(filepath.Join(dir, "address"))
	fail(err)
	s := &steps{address: string(address), rdma: rdma}
	s.node, err = Open(Options{Name: "sender", Token: testToken, Warn: quiet})
	fail(err)
	for _, step := range importerSteps[:n] {
		fail(step.do(s))
	}
	testwait.Ready()
}

// Whenever an importer is killed, its exporter soon has all back that it held, and nothing arrives after Unexport.
func TestImporterIsKilledAtEachStep(t *testing.T) {
	for _, tr := range []transport{transportOf(t, "shared memory"), transportOf(t, "tcp with token"), overRDMA(t)} {
		t.Run(tr.name, func(t *testing.T) {
			if tr.name == "rdma" {
				rdmatest.Need(t)
			}
			for k, step := range importerSteps {
				t.Run(step.name, func(t *testing.T) { importerDies(t, tr, k+1) })
			}
		})
	}
}

func importerDies(t *testing.T, tr transport, steps int) {
	before := resourcesNow(t)
	w := tr.begin(t, func(o *Options) { o.Warn = quiet })
	if err := os.WriteFile(filepath.Join(peerDir(t), "address"), []byte(w.address), 0o600); err != nil {
		t.Fatal(err)
	}
	memory := w.memory(t, 1<<20)
	e := w.export(t, 1, memory, Permissions{Peers: sender.Peers, MaxImporters: 1}, ExportOptions{Queue: 1})
	e.Block()
	w.export(t, 2, w.memory(t, 1), sender, ExportOptions{})
	bufferID := "step "
	if tr.name == "rdma" {
		bufferID += "rdma "
	}
	_, kill := testwait.Peer(t, "VMMC_TEST_PEER="+bufferID+strconv.Itoa(steps))
	kill()
	testwait.Until(t, "the importer is forgotten", func() bool {
		s := w.exporter.Stats()
		return s.Waiting == 0 && importersOf(s) == 0
	})
	if err := e.Unexport(testContext(t)); err != nil {
		t.Fatal(err)
	}
	clear(memory)
	w.export(t, 3, w.memory(t, 10), sender, ExportOptions{})
	if err := arrive(t, w.imports(t, 3), "next"); err != nil { // the exporter goes on
		t.Error(err)
	}
	if strings.Trim(string(memory), "\x00") != "" {
		t.Error("something landed after Unexport")
	}
	if err := errors.Join(w.importer.Close(), w.exporter.Close()); err != nil {
		t.Error(err)
	}
	testwait.Until(t, "everything is given back", func() bool { return resourcesNow(t).pinned <= before.pinned })
}

func importersOf(s broker.Stats) (all int) {
	for _, e := range s.Exports {
		all += e.Importers
	}
	return all
}
