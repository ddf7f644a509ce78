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
		list = append(list, report.Site{Name: siteName(k.frames[:]), Op: opName(k.op), Uses: c.uses, Bytes: c.bytes})
	}
	slices.SortFunc(list, func(a, b report.Site) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Name, b.Name))
	})
	return list[:min(len(list), 4*report.TopSites)]
}

func opName(op predictor.Op) string {
	switch op {
	case C.PW_START:
		return "start"
	case C.PW_GATHER:
		return "gather"
	case C.PW_SCATTER:
		return "scatter"
	case C.PW_SCAN:
		return "scan"
	case C.PW_OTHER:
		return "other"
	}
	return trace.Op(op).String()
}

// siteName names the innermost frames: function+offset (or file+offset), from
// the inside out. They are return addresses: the call is just before.
func siteName(frames []uint64) string {
	const most = 3
	s := ""
	for i, f := range frames[:most] {
		if f == 0 {
			break
		}
		var file *C.char
		var offset C.uint64_t
		name := C.pw_symbol_of(C.uint64_t(f-1), &file, &offset)
		if i > 0 {
			s += " < "
		}
		switch {
		case name == nil:
			s += fmt.Sprintf("%#x", f)
		case C.GoString(name) != "":
			s += fmt.Sprintf("%s+%#x", C.GoString(name), uint64(offset))
		default:
			s += fmt.Sprintf("%s+%#x", path.Base(C.GoString(file)), uint64(offset))
		}
	}
	return cmp.Or(s, "unknown (built without frame pointers)")
}
