//go:build !amd64

package vmwatch

var bpfObject []byte

func x32Enabled() bool { return false }
