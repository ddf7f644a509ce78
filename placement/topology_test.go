package placement

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

	"pinwheel/internal/testtree"
)

// readTree reads a golden tree of testdata/topology.
func readTree(t testing.TB, name string) fstest.MapFS {
	t.Helper()
	return testtree.Read(t, filepath.Join("testdata/topology", name))
}

func readTopology(t testing.TB, root fs.FS) *Topology {
	t.Helper()
	topology, err := ReadTopology(root)
	if err != nil {
		t.Fatal(err)
	}
	return topology
}

var distanceNames = [...]string{"same", "core", "L2", "L3", "node", "package", "far"}

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
