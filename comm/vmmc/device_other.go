//go:build !linux || !cgo

package vmmc

import "pinwheel/verbs/rdma"

// openDevice fails: RDMA needs cgo and Linux.
func openDevice(string) (device, error) { return nil, rdma.Probe() }
