package main

/*
#include "bind.h"
#include "ops.h"
*/
import "C"

import (
	"cmp"
	"fmt"
	"path"
	"strings"

	"pinwheel/predictor"
	"pinwheel/trace"
)

// nameSite names a call site and its kind of call for the report.
func nameSite(c predictor.CallSite) (site, op string) {
	return siteName(c.Frames[:], symbolAt), opName(c.Op)
}

// opNames are the names of calls that package trace does not know (ops.h).
var opNames = map[predictor.Op]string{
	C.PW_START: "start",
	C.PW_FILE:  "file",
	C.PW_OTHER: "other",
}

// lastOp is the last kind of call.
const lastOp = predictor.Op(C.PW_OTHER)

func opName(op predictor.Op) string { return cmp.Or(opNames[op], trace.Op(op).String()) }

// symbol is an address as the dynamic linker knows it.
type symbol struct {
	name   string // of the function; "" if it is not exported
	file   string // of the program or library; "" if it is in none
	offset uint64 // from the beginning of the function, or of the file
}

// siteName names the innermost frames: function+offset (or file+offset), from
// the inside out. They are return addresses, so the call is just before each. Frames
// outside of main are left out.
func siteName(frames []uint64, lookup func(address uint64) symbol) string {
	const most = 3
	var names []string
	for _, f := range frames[:min(most, len(frames))] {
		if f == 0 {
			break
		}
		at := lookup(f - 1)
		file := path.Base(at.file)
		if strings.HasPrefix(file, "libc.so.") && len(names) > 0 {
			break
		}
		if at.file == "" {
			names = append(names, fmt.Sprintf("%#x", f))
		} else {
			names = append(names, fmt.Sprintf("%s+%#x", cmp.Or(at.name, file), at.offset))
		}
	}
	return cmp.Or(strings.Join(names, " < "), "unknown (built without frame pointers)")
}

func symbolAt(address uint64) symbol {
	var file *C.char
	var offset C.uint64_t
	name := C.pw_symbol_of(C.uint64_t(address), &file, &offset)
	if name == nil {
		return symbol{}
	}
	return symbol{C.GoString(name), C.GoString(file), uint64(offset)}
}
