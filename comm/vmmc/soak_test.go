package vmmc

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"pinwheel/internal/testwait"
)

// cycles is how often the soak test repeats itself.
func cycles(t *testing.T) int {
	n, err := strconv.Atoi(os.Getenv("PINWHEEL_VMMC_CYCLES"))
	if err != nil {
		return 300
	}
	t.Logf("%d cycles", n)
	return n
}

// resources are what exports and imports must not leave behind.
type resources struct{ files, mappings, pinned, resident int }

func resourcesNow(t *testing.T) (r resources) {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	maps, err2 := os.ReadFile("/proc/self/maps")
	status, err3 := os.ReadFile("/proc/self/status")
	if err := errors.Join(err, err2, err3); err != nil {
		t.Fatal(err)
	}
	kib := func(name string) int {
		_, rest, _ := strings.Cut(string(status), name+":")
		n, err := strconv.Atoi(strings.Fields(rest)[0])
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	return resources{len(files), strings.Count(string(maps), "\n"), kib("VmPin"), kib("VmRSS")}
}

// pinsNothingAtTheEnd fails the test unless VmPin is back where it is now, once the nodes opened after this have closed.
func pinsNothingAtTheEnd(t *testing.T) {
	began := resourcesNow(t).pinned
	t.Cleanup(func() {
		if ended := resourcesNow(t).pinned; ended != began {
			t.Errorf("VmPin was %d KiB before there were nodes, and is %d KiB after", began, ended)
		}
	})
}

// Exports, imports and mappings that come and go leave nothing behind.
func TestSoakNothingIsLeftOfWhatIsGone(t *testing.T) {
	n := cycles(t)
	limit := testwait.Limit + time.Duration(n)*20*time.Millisecond
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	for _, tr := range transports {
		t.Run(tr.name, func(t *testing.T) {
			testwait.BoundAt(t, limit)
			pinsNothingAtTheEnd(t)
			o := tr.options(t, "receiver")
			o.Listen = []string{tr.listen(t)}
			w := &world{transport: tr, exporter: openNode(t, o)}
			w.address = w.exporter.Addresses()[0]
			w.importer = w.node(t, "sender")
			memory := make([]byte, 4096)
			cycle := func() {
				var err error
				if tr.alloc {
					if memory, err = w.exporter.Alloc(4096); err != nil {
						t.Fatal(err)
					}
				}
				local, err := w.importer.Alloc(4096)
				if err != nil {
					t.Fatal(err)
				}
				e, err := w.exporter.Export(1, memory, sender, ExportOptions{})
				if err != nil {
					t.Fatal(err)
				}
				i, err := w.importer.Import(ctx, 1, w.address)
				if err != nil {
					t.Fatal(err)
				}
				w.settle(t, i)
				_, err = i.Proxy()
				m, err2 := i.Map(0, local, MapOptions{})
				if err := errors.Join(err, err2); err != nil {
					t.Fatal(err)
				}
				local[9] = 'x'
				if err := errors.Join(m.Flush(ctx), i.Send(ctx, []byte("y"), 99, SendOptions{})); err != nil {
					t.Fatal(err)
				}
				if err := e.Unexport(ctx); err != nil {
					t.Fatal(err)
				}
				if memory[9] != 'x' || memory[99] != 'y' {
					t.Fatalf("%q did not arrive", memory[:100])
				}
				if tr.alloc {
					err = w.exporter.Free(memory)
				}
				// The import gives its mappings up by itself, a moment later.
				testwait.Receive(t, "the end of the import", i.Done())
				if err := errors.Join(err, m.Unmap(), w.importer.Free(local)); err != nil {
					t.Fatal(err)
				}
			}
			for range 20 {
				cycle()
			}
			before := resourcesNow(t)
			for range n {
				cycle()
			}
			after := resourcesNow(t)
			t.Logf("before %+v, after %+v", before, after)
			// Threads and their stacks, the heap, and ends that are still under way.
			if after.files > before.files+10 || after.mappings > before.mappings+100 || after.pinned != before.pinned ||
				after.resident > before.resident+64<<10 {
				t.Error("something is left")
			}
		})
	}
}

// As many importers as an export has at most, which all get a message through, and leave.
func TestSoakManyImporters(t *testing.T) {
	for _, name := range []string{"shared memory", "tcp with token", "rdma"} {
		t.Run(name, func(t *testing.T) { manyImporters(t, transportOf(t, name)) })
	}
}

func manyImporters(t *testing.T, tr transport) {
	pinsNothingAtTheEnd(t)
	w := tr.begin(t)
	memory := w.memory(t, 4096)
	e := w.export(t, 1, memory, sender, ExportOptions{})
	first := w.imports(t, 1) // what stays of it does so for one
	first.Unimport()
	testwait.Until(t, "it is given back", func() bool { return w.exporter.Stats().Exports[0].Importers == 0 })
	before := resourcesNow(t)
	importers := make([]*Node, 256)
	for k := range importers {
		o := w.options(t, "sender")
		o.Manager.IdlePolicy = "off" // as many helpers in one process would keep each other from their table of claims
		importers[k] = openNode(t, o)
		i, err := importers[k].Import(testContext(t), 1, w.address)
		if err != nil {
			t.Fatal(err)
		}
		send(t, i, "x", uint64(k), SendOptions{})
	}
	testwait.Until(t, "all messages arrive", func() bool { return strings.Count(string(memory), "x") == len(importers) })
	with := resourcesNow(t)
	t.Logf("before %+v, with all %+v", before, with)
	if tr.name == "rdma" && with.pinned <= before.pinned { // otherwise it would say nothing that they are given back
		t.Errorf("VmPin is %d KiB before all of them, and %d KiB with them", before.pinned, with.pinned)
	}
	if i, err := w.importer.Import(testContext(t), 1, w.address); !errors.Is(err, ErrTooManyImporters) {
		t.Errorf("one more: %v, %v", i, err)
	}
	if err := e.Unexport(testContext(t)); err != nil {
		t.Error(err)
	}
	for _, n := range importers {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	}
	testwait.Until(t, "everything is given back", func() bool {
		after := resourcesNow(t)
		return after.files <= before.files+10 && after.pinned == before.pinned
	}, func() any { return []resources{before, resourcesNow(t)} })
}
