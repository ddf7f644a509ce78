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
	"slices"
	"strings"
	"sync"

	"pinwheel/helper"
	"pinwheel/mpishim/report"
	"pinwheel/predictor"
	"pinwheel/trace"
)

// siteTable counts uses by call site, on the helper.
type siteTable struct {
	mu  sync.Mutex // protects all; taken by the helper for an addition, and by the report
	all map[siteKey]*siteCount
}

type siteKey struct {
	op     predictor.Op
	frames [predictor.MaxFrames]uint64
}

type siteCount struct{ uses, bytes int64 }

// mostSites bounds the table; what comes later is not listed.
const mostSites = 4096

func newSiteTable() *siteTable { return &siteTable{all: map[siteKey]*siteCount{}} }

func (t *siteTable) count(e *helper.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := siteKey{e.Op, e.Frames}
	c := t.all[k]
	if c == nil {
		if len(t.all) == mostSites {
			return
		}
		c = &siteCount{}
		t.all[k] = c
	}
	c.uses++
	c.bytes += int64(e.Range.Len())
}

// top returns the sites with the most bytes, with their names.
func (t *siteTable) top() []report.Site {
	t.mu.Lock()
	defer t.mu.Unlock()
	var list []report.Site
	for k, c := range t.all {
		list = append(list, report.Site{Name: siteName(k.frames[:], symbolAt), Op: opName(k.op), Uses: c.uses, Bytes: c.bytes})
	}
	slices.SortFunc(list, func(a, b report.Site) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Name, b.Name))
	})
	return list[:min(len(list), 4*report.TopSites)]
}

// opNames are those of the kinds of calls that package trace lacks (ops.h).
var opNames = map[predictor.Op]string{
	C.PW_START: "start",
	C.PW_OTHER: "other",
}

// lastOp is the last of them all.
const lastOp = predictor.Op(C.PW_OTHER)

func opName(op predictor.Op) string { return cmp.Or(opNames[op], trace.Op(op).String()) }

// symbol is what the dynamic linker knows of an address.
type symbol struct {
	name   string // of the function; "" if it is not exported
	file   string // of the program or library; "" if it is in none
	offset uint64 // from the beginning of the function, or of the file
}

// siteName names the innermost frames: function+offset (or file+offset), from
// the inside out. They are return addresses: the call is just before. What
// started main is of no interest.
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
