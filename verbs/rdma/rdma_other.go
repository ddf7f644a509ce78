//go:build !linux || !cgo

package rdma

import (
	"fmt"

	"pinwheel/verbs"
)

// errNoCgo is what everything fails with in this build.
var errNoCgo = fmt.Errorf("rdma unavailable: this program was built without cgo or not for Linux: %w",
	verbs.ErrUnsupported)

// Provider exists in this build so that its users compile; there never is one.
type Provider struct {
	verbs.Provider
	verbs.Accountant
}

// Open fails: RDMA needs cgo and Linux.
func Open(Options) (*Provider, error) { return nil, errNoCgo }

// Probe says why there is no RDMA.
func Probe() error { return errNoCgo }

// Devices fails: RDMA needs cgo and Linux.
func Devices() ([]DeviceInfo, error) { return nil, errNoCgo }
