// Command cpeer measures hits of C threads through regcache/table.h; see ../peer.h for what it prints.
package main

/*
#cgo CFLAGS: -O2
#include <stdint.h>

void run(uintptr_t cache, char *test, int n, int threads, int iterations);
*/
import "C"

import (
	"fmt"
	"os"
	"runtime/cgo"
	"strconv"

	"pinwheel/lab/bench/peers/noop"
	"pinwheel/regcache"

	// ctable has the Go half of what the loops call.
	_ "pinwheel/lab/bench/ctable"
)

var provider noop.Provider

//export slow_registrations
func slow_registrations(on C.int) { provider.Delay.Store(int64(on) * 20e6) }

//export registered_bytes
func registered_bytes() C.double { return C.double(provider.Bytes.Load()) }

func main() {
	c, err := regcache.New(&provider, regcache.Options{KnownRegions: 1 << 17})
	if err != nil || len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "cpeer:", err)
		os.Exit(1)
	}
	var a [3]C.int
	for i, s := range os.Args[2:] {
		n, err := strconv.Atoi(s)
		if err != nil || i >= len(a) {
			fmt.Fprintln(os.Stderr, "cpeer: bad argument", s)
			os.Exit(2)
		}
		a[i] = C.int(n)
	}
	C.run(C.uintptr_t(cgo.NewHandle(c)), C.CString(os.Args[1]), a[0], a[1], a[2])
}
