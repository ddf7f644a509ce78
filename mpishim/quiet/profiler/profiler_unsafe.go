// Package profiler keeps SIGPROF blocked on threads of a library that watches mappings. It imports this and package quiet,
// and that is all.
package profiler

import (
	_ "unsafe" // for go:linkname

	"golang.org/x/sys/unix"
	_ "pinwheel/vmwatch" // whose library initialises profSet before this package does anything
)

// profSet has the signal that the BPF library blocks while the kernel loads a program, and unblocks afterwards. In a
// program of others, threads of ours have it blocked for good: the kernel would give them the program's SIGPROF.
//
//go:linkname profSet github.com/cilium/ebpf/internal/sys.profSet
var profSet unix.Sigset_t

func init() { profSet = unix.Sigset_t{} }
