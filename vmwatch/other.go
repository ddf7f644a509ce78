//go:build !amd64

package vmwatch

import (
	"fmt"
	"runtime"
)

// The BPF programs know the system calls and registers of x86-64, and the
// userfaultfd's reader thread is written in its assembly.
var bpfObject []byte

func x32Enabled() bool { return false }

func openUffd(*pageReader) (notifier, error) {
	return nil, fmt.Errorf("no userfaultfd reader for %s", runtime.GOARCH)
}
