package helper

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/cockroachdb/datadriven"
)

// readTree reads a golden tree: one "path: content" per line.
func readTree(t testing.TB, name string) fstest.MapFS {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata/topology", name))
	if err != nil {
		t.Fatal(err)
	}
	tree := fstest.MapFS{}
	for line := range strings.Lines(string(text)) {
		if name, content, ok := strings.Cut(line, ": "); ok && !strings.HasPrefix(line, "#") {
			tree[name] = &fstest.MapFile{Data: []byte(content), Mode: 0o444}
		}
	}
	return tree
}

func readTopology(t testing.TB, root fs.FS) *Topology {
	t.Helper()
	topology, err := ReadTopology(root)
	if err != nil {
		t.Fatal(err)
	}
	return topology
}

var distanceNames = [...]string{"same", "core", "L2", "L3", "package", "far"}

// TestTopologyDistances prints what each pair of processors of a machine shares.
func TestTopologyDistances(t *testing.T) {
	datadriven.RunTest(t, "testdata/distances", func(t *testing.T, d *datadriven.TestData) string {
		topology := readTopology(t, readTree(t, d.Cmd))
		var b strings.Builder
		online := topology.Online()
		for _, from := range online {
			fmt.Fprintf(&b, "%2d core %v:", from, topology.Core(from))
			for _, to := range online {
				fmt.Fprintf(&b, " %s", distanceNames[topology.Distance(from, to)])
			}
			b.WriteByte('\n')
		}
		return b.String()
	})
}

func TestTopologyOfThisMachineHoldsItsAllowedProcessors(t *testing.T) {
	topology := readTopology(t, os.DirFS("/"))
	allowed, err := AllowedCPUs()
	if err != nil || len(allowed) == 0 {
		t.Fatalf("AllowedCPUs() = %v, %v", allowed, err)
	}
	for _, cpu := range allowed {
		if !slices.Contains(topology.Online(), cpu) || !slices.Contains(topology.Core(cpu), cpu) {
			t.Errorf("processor %d is allowed but not in %v", cpu, topology.Online())
		}
	}
}

func TestTopologyWithoutProcessorListIsAnError(t *testing.T) {
	for _, tree := range []fstest.MapFS{{}, {sysCPU + "/online": &fstest.MapFile{Data: []byte("0-x\n")}}} {
		if _, err := ReadTopology(tree); err == nil || !strings.Contains(err.Error(), sysCPU+"/online") {
			t.Errorf("ReadTopology: %v, want an error that names the file", err)
		}
	}
}

func TestParseCPUList(t *testing.T) {
	for in, want := range map[string][]int{
		"":              nil,
		"\n":            nil,
		"0\n":           {0},
		"0-3,8,10-11\n": {0, 1, 2, 3, 8, 10, 11},
		"5,1-2,2":       {1, 2, 5},
	} {
		if got, err := ParseCPUList(in); err != nil || !slices.Equal(got, want) {
			t.Errorf("ParseCPUList(%q) = %v, %v, want %v", in, got, err, want)
		}
	}
	for _, in := range []string{"a", "1-", "-1", "3-1", "1,,2", "0-9999999999", "8192", "1 2"} {
		if got, err := ParseCPUList(in); err == nil {
			t.Errorf("ParseCPUList(%q) = %v, want an error", in, got)
		}
	}
}
