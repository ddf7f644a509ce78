// Command watch is libpinwheel-watch.so: package vmwatch for registration caches in C, as mpishim/include/pinwheel_watch.h
// declares it, and a memory monitor of libfabric. Package capi has its functions.
package main

import (
	"pinwheel/mpishim/quiet"
	_ "pinwheel/mpishim/quiet/profiler"
	"pinwheel/mpishim/watch/capi"
)

func main() {} // never called: this is a library

func init() {
	if !quiet.Reached() { // built with a Go that package quiet does not know
		capi.Refuse()
	}
}
