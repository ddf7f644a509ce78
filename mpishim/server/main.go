package main

/*
#cgo CFLAGS: -O2
#cgo LDFLAGS: -ldl
#include "bind.h"
*/
import "C"

import (
	"fmt"
	"runtime"
	"sync"

	"go.uber.org/atomic"
	"golang.org/x/sys/unix"

	"pinwheel/internal/console"
	"pinwheel/internal/settings"
	"pinwheel/mpishim/quiet"
	_ "pinwheel/mpishim/quiet/profiler"
)

func main() {} // never called: this is a library

func init() { go serve() }

// running counts the servers.
var running atomic.Int32

// serve starts a server for each library of the process that binds: the one
// that is preloaded, the one that a transport links, or both.
func serve() {
	few := max(3, min(runtime.GOMAXPROCS(0), 4))
	runtime.GOMAXPROCS(few)
	for {
		for sh := C.pw_take_bound(); sh != nil; {
			next := sh.next
			// A helper keeps its P while it sleeps; its server and one more must go on.
			if n := int(running.Add(1)); n > 1 {
				atLeastProcs(few + 2*(n-1))
			}
			go run(sh)
			sh = next
		}
	}
}

// procsMu orders those who raise GOMAXPROCS. Nobody lowers it again: others may rely on it.
var procsMu sync.Mutex

// atLeastProcs has the Go runtime, which is this library's own, run n threads at a time if it runs fewer.
func atLeastProcs(n int) {
	procsMu.Lock()
	defer procsMu.Unlock()
	if runtime.GOMAXPROCS(0) < n {
		runtime.GOMAXPROCS(n)
	}
}

// run is the life of a server thread.
func run(sh *C.struct_pw_shared) {
	defer running.Add(-1)
	runtime.LockOSThread() // for good: the thread ends with the server
	unbind()
	set, warnings := settings.FromEnvironment()
	s := newServer(sh, set)
	if !quiet.Reached() {
		s.warn("built with a Go that it does not know; going on without Pinwheel")
		at32(&sh.started).Store(1)
		C.pw_futex_wake(&sh.started)
		return
	}
	if sh.rank <= 0 { // all ranks have the same environment
		for _, w := range warnings {
			s.warn(w)
		}
	}
	s.start()
	at32(&sh.serving).Store(1)
	at32(&sh.started).Store(1)
	C.pw_futex_wake(&sh.started)
	s.loop()
}

// unbind lets the server run on any processor. A thread that asks sleeps meanwhile,
// so its processor is free, and it may be the only one.
func unbind() {
	var all unix.CPUSet
	all.Fill()
	_ = unix.SchedSetaffinity(0, &all) // then it runs where the others do
}

// warn writes one line, if the user wants to see any.
func (s *server) warn(message string) {
	if s.set.Log != "off" {
		console.Write("pinwheel: " + message + "\n")
	}
}

// info writes one line if the user asked for more than warnings.
func (s *server) info(message string) {
	if s.set.Log != "info" && s.set.Log != "debug" {
		return
	}
	if s.sh.rank >= 0 {
		message = fmt.Sprintf("rank %d: %s", s.sh.rank, message)
	}
	console.Write("pinwheel: " + message + "\n")
}
