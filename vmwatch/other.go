//go:build !amd64 && !arm64

package vmwatch

import (
	"fmt"
	"runtime"

	"pinwheel/mem"
)

// The BPF programs know the system calls and registers of processors, and the
// userfaultfd's reader thread is written in their assembly.
var (
	bpfObject    []byte
	innerStructs []string
)

const compatLimit mem.Addr = 0

func x32Enabled() bool { return false }

func openUffd(*pageReader) (notifier, error) {
	return nil, fmt.Errorf("no userfaultfd reader for %s", runtime.GOARCH)
}
