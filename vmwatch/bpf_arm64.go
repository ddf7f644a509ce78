package vmwatch

import (
	_ "embed"

	"pinwheel/mem"
)

// bpfObject is bpf/watch.bpf.c compiled for AArch64; go generate makes it.
//
//go:embed bpf/watch_arm64.o
var bpfObject []byte

// innerStructs are those of coreStructs that only this processor has.
var innerStructs []string

// compatLimit: a 64-bit process can't make 32-bit system calls.
const compatLimit mem.Addr = 0

func x32Enabled() bool { return false }
