package vmmc

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"pinwheel/internal/testwait"
	"pinwheel/mem"
)

// mapped is an automatic update area of two pages, mapped to those of an export of four from the second on.
func mapped(t *testing.T) (w *world, remote, local []byte, e *Export, i *Import, m *Mapping) {
	w = transports[0].begin(t)
	page := int(mem.PageSize)
	remote, e, i = w.pair(t, 4*page, ExportOptions{})
	local, err := w.importer.Alloc(uint64(3 * page))
	if err != nil {
		t.Fatal(err)
	}
	local[0], local[page] = 'a', 'b'
	m, err = i.Map(mem.PageSize, local[page:], MapOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return w, remote, local, e, i, m
}

func TestStoresIntoAnAutomaticUpdateAreaArrive(t *testing.T) {
	_, remote, local, _, i, m := mapped(t)
	page := int(mem.PageSize)
	from, to := wordAt(local, page+8), wordAt(remote, page+8)
	for k := range uint64(1000) {
		from.Store(k)
		if got := to.Load(); got != k {
			t.Fatalf("%d after a store of %d", got, k)
		}
	}
	local[3*page-1] = 'z'
	if remote[3*page-1] != 'z' || local[0] != 'a' || remote[0] != 0 {
		t.Errorf("has %q, %q, %q", remote[3*page-1], local[0], remote[0])
	}
	if err := m.Unmap(); err != nil {
		t.Fatal(err)
	}
	from.Store(7) // a local computation
	if got := to.Load(); got != 999 || local[3*page-1] != 'z' {
		t.Errorf("%d and %q after Unmap", got, local[3*page-1])
	}
	if m, err := i.Map(0, local, MapOptions{}); err != nil { // another destination
		t.Error(err)
	} else if err := errors.Join(m.Unmap(), m.Unmap()); err != nil {
		t.Error(err)
	}
}

func TestAddressHasOneDestination(t *testing.T) {
	w, _, local, _, i, _ := mapped(t)
	page := int(mem.PageSize)
	if _, err := i.Map(0, local[2*page:], MapOptions{}); !errors.Is(err, ErrInUse) {
		t.Errorf("a second mapping: %v", err)
	}
	if _, err := i.Map(0, local[:page], MapOptions{}); err != nil {
		t.Errorf("the page before: %v", err)
	}
	if _, err := w.importer.Export(5, local[:9], sender, ExportOptions{}); !errors.Is(err, ErrInUse) {
		t.Errorf("an export of it: %v", err)
	}
	if err := w.importer.Free(local); !errors.Is(err, ErrInUse) {
		t.Errorf("freed: %v", err)
	}
}

func TestWhatCannotBeMappedIsRefused(t *testing.T) {
	w, _, local, _, i, m := mapped(t)
	if err := m.Unmap(); err != nil {
		t.Fatal(err)
	}
	page := int(mem.PageSize)
	for what, try := range map[string]func() (*Mapping, error){
		"half a page":       func() (*Mapping, error) { return i.Map(0, local[:page/2], MapOptions{}) },
		"no page":           func() (*Mapping, error) { return i.Map(0, local[:0], MapOptions{}) },
		"from half a page":  func() (*Mapping, error) { return i.Map(uint64(page/2), local[:page], MapOptions{}) },
		"beyond the export": func() (*Mapping, error) { return i.Map(uint64(3*page), local[:2*page], MapOptions{}) },
		"other memory":      func() (*Mapping, error) { return i.Map(0, make([]byte, 4*page), MapOptions{}) },
	} {
		if _, err := try(); err == nil {
			t.Errorf("%s was mapped", what)
		}
	}
	if _, err := w.importer.Export(5, local[:9], sender, ExportOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := i.Map(0, local, MapOptions{}); !errors.Is(err, ErrInUse) {
		t.Errorf("exported memory: %v", err)
	}
	i.Unimport()
	if _, err := i.Map(0, local, MapOptions{}); !errors.Is(err, ErrUnimported) {
		t.Errorf("after Unimport: %v", err)
	}
}

// The end of a mapping from the other side leaves the sender its memory, with what it shows.
func TestUnexportEndsAutomaticUpdate(t *testing.T) {
	_, remote, local, e, i, m := mapped(t)
	page := int(mem.PageSize)
	local[page] = 'k'
	if err := e.Unexport(testContext(t)); err != nil {
		t.Fatal(err)
	}
	local[page+1] = 'l'
	if string(remote[page:page+2]) != "k\x00" || string(local[page:page+2]) != "kl" {
		t.Errorf("has %q and %q", remote[page:page+2], local[page:page+2])
	}
	testwait.Receive(t, "the end of the import", i.Done())
	if err := m.Unmap(); err != nil {
		t.Error(err)
	}
}

// A child of a fork could write into memory that the exporter takes for its own again.
func TestChildrenHaveNoMemoryOfPeers(t *testing.T) {
	w := transports[0].begin(t) // shared memory
	_, _, i := w.pair(t, 1<<16, ExportOptions{})
	area, err := w.importer.Alloc(1 << 16)
	if err != nil {
		t.Fatal(err)
	}
	m, err := i.Map(0, area, MapOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for what, at := range map[string][]byte{"the import": i.memory.data, "the area": area, "the ring": i.ring.data} {
		if flags := mappingFlags(t, at); !strings.Contains(flags, " dc") {
			t.Errorf("%s has the flags%s", what, flags)
		}
	}
	if err := m.Unmap(); err != nil {
		t.Fatal(err)
	}
	if flags := mappingFlags(t, area); strings.Contains(flags, " dc") {
		t.Errorf("after Unmap the area has the flags%s", flags)
	}
}

// mappingFlags returns those of the mapping of b (proc_pid_smaps(5)).
func mappingFlags(t *testing.T, b []byte) string {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Skip(err)
	}
	here := false
	for line := range strings.Lines(string(maps)) {
		var from, to uint64
		if n, _ := fmt.Sscanf(line, "%x-%x ", &from, &to); n == 2 {
			at := uint64(mem.RangeOf(b).Start)
			here = from <= at && at < to
		}
		if flags, ok := strings.CutPrefix(line, "VmFlags:"); ok && here {
			return strings.TrimRight(flags, "\n")
		}
	}
	t.Fatal("it is not mapped")
	return ""
}
