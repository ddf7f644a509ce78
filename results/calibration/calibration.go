// Package calibration holds the calibrations that are committed with the
// project, one JSON file each, so that the virtual replay has costs to use
// wherever it runs. See pinwheel/verbs/calibrate for what is in them.
//
//   - uring-amd-epyc-linux-6.18: io_uring registered buffers, measured on a
//     virtual machine of two processors.
//   - rxe-qemu-linux-6.12: libibverbs on a Soft-RoCE device in the test bed, that
//     is in a guest whose processor is emulated: what RDMA registration costs in
//     relation to other things there, not what an adapter needs (make calibrate-rdma).
//   - rdma-like: not measured here. The registration cost that UCX assumes of an
//     InfiniBand adapter: UCX_IB_MEM_REG_OVERHEAD=16us and MEM_REG_GROWTH=0.06ns a
//     byte, that is 0.25 us a page (src/uct/ib/base/ib_md.c). UCX has no figure for
//     deregistration; half of registration is assumed.
package calibration

import (
	"embed"
	"fmt"
	"slices"
	"strings"

	"pinwheel/verbs/calibrate"
)

// The committed calibrations.
const (
	Uring    = "uring-amd-epyc-linux-6.18"
	RDMALike = "rdma-like"
)

//go:embed *.json
var files embed.FS

// Names returns the names of all committed calibrations, sorted.
func Names() []string {
	entries, err := files.ReadDir(".")
	if err != nil {
		panic(err) // embedded at build time
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".json"))
	}
	return names
}

// Named returns a committed calibration. Its caller owns it.
func Named(name string) (*calibrate.Calibration, error) {
	if !slices.Contains(Names(), name) {
		return nil, fmt.Errorf("no calibration %q; there are %s", name, strings.Join(Names(), ", "))
	}
	f, err := files.Open(name + ".json")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return calibrate.Read(f)
}
