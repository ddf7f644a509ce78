// Command vmmc is libpinwheel-vmmc.so: package vmmc for programs in C, as mpishim/include/pinwheel_vmmc.h
// declares it. Each function here is the one of that name there. An object of C has the handle of one of Go.
package main

import _ "pinwheel/mpishim/quiet"

func main() {} // never called: this is a library
