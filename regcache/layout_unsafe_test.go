package regcache

import (
	"go/token"
	"go/types"
	"os"
	"regexp"
	"strconv"
	"testing"
	"unsafe"

	"pinwheel/vmwatch"
)

// TestHeadersSayTheSameAsGo compares every constant and every asserted
// offset of table.h and grant.h with this package's; the C compiler checks the assertions.
func TestHeadersSayTheSameAsGo(t *testing.T) {
	var text []byte
	for _, name := range []string{"table.h", "grant.h"} {
		header, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, header...)
	}
	constants := map[string]uint64{
		"MAGIC": tableMagic, "VERSION": tableVersion, "SLOT_MASK": slotMask, "OPEN": openBit,
		"COUNT_BITS": countBits, "COUNT_MASK": countMask, "LOCAL_WRITE": packAccess(1), "REMOTE_WRITE": packAccess(2),
		"REMOTE_READ": packAccess(4), "REMOTE_ATOMIC": packAccess(8), "ON_DEMAND": packAccess(1 << 6),
		"RELAXED_ORDERING": packAccess(1 << 20), "KIND": kindMask, "ACCESS": rightsMask | kindMask, "OTHER": otherBit,
		"WHICH": whichMask, "FENCED": flagFenced, "ANY_COVERING": flagAnyCovering, "RETIRED": descRetired, "ABSENT": descAbsent, "GOLDEN": golden,
		"GRANTS": grantCount, "GRANTS_AT": grantsAt, "GRANT_NOTES": GrantNotes,
		"GRANT_BYTES": grantBytes, "CREDIT_BYTES": creditBits,
		"CHANGES": vmwatch.RecordCount, "GRANULE_BITS": vmwatch.GranuleBits, "GRANULE_COUNT": vmwatch.GranuleCount,
		"NONE": grantNone, "FREE": grantFree, "TAKEN": grantTaken, "MADE": grantMade, "FAILED": grantFailed,
	}
	for _, m := range regexp.MustCompile(`(?m)^#define PWT_([A-Z_]+) ([^s].*?)\s*(/\*.*)?$`).FindAllStringSubmatch(string(text), -1) {
		expr := regexp.MustCompile(`([0-9a-f])u(ll)?\b`).ReplaceAllString(m[2], "$1")
		v, err := types.Eval(token.NewFileSet(), nil, token.NoPos, expr)
		if err != nil {
			t.Fatalf("PWT_%s: %v", m[1], err)
		}
		if want, ok := constants[m[1]]; !ok || v.Value.String() != strconv.FormatUint(want, 10) {
			t.Errorf("PWT_%s is %v in C, %d in Go", m[1], v.Value, want)
		}
		delete(constants, m[1])
	}
	for name := range constants {
		t.Errorf("PWT_%s is not in the headers", name)
	}

	var h header
	var e entry
	var ch change
	var d desc
	var c counts
	var r Ref
	var o grant
	var all grants
	layout := map[string]uintptr{
		"header.version": unsafe.Offsetof(h.version), "header.capacity": unsafe.Offsetof(h.capacity),
		"header.descs": unsafe.Offsetof(h.descs),
		"header.size":  unsafe.Offsetof(h.size), "header.exact": unsafe.Offsetof(h.exact),
		"header.granules": unsafe.Offsetof(h.granules),
		"header.classes":  unsafe.Offsetof(h.classes), "header.gen": unsafe.Offsetof(h.gen),
		"header.seen":  unsafe.Offsetof(h.seen),
		"header.epoch": unsafe.Offsetof(h.epoch), "header.retired": unsafe.Offsetof(h.retired),
		"header.undone": unsafe.Offsetof(h.undone), "header.flags": unsafe.Offsetof(h.flags),
		"header.log": unsafe.Offsetof(h.log), "change.end": unsafe.Offsetof(ch.end),
		"change.check": unsafe.Offsetof(ch.check), "change.seq": unsafe.Offsetof(ch.seq), "change": unsafe.Sizeof(ch),
		"header.page_mask": unsafe.Offsetof(h.pageMask), "header.still": unsafe.Offsetof(h.still), "header": unsafe.Sizeof(h),
		"entry.low": unsafe.Offsetof(e.low), "entry.high": unsafe.Offsetof(e.high),
		"entry.keys": unsafe.Offsetof(e.keys), "entry": unsafe.Sizeof(e),
		"desc.low": unsafe.Offsetof(d.low), "desc.high": unsafe.Offsetof(d.high), "desc.keys": unsafe.Offsetof(d.keys),
		"desc.handle": unsafe.Offsetof(d.handle), "desc.flags": unsafe.Offsetof(d.flags),
		"desc.access": unsafe.Offsetof(d.access), "desc": unsafe.Sizeof(d),
		"local.hits": unsafe.Offsetof(c.hits), "local": unsafe.Sizeof(c),
		"grant.slot": unsafe.Offsetof(o.slot), "grant.low": unsafe.Offsetof(o.low), "grant.high": unsafe.Offsetof(o.high),
		"grant.generation": unsafe.Offsetof(o.generation), "grant.note": unsafe.Offsetof(o.note), "grant": unsafe.Sizeof(o),
		"grants.posted": unsafe.Offsetof(all.posted), "grants.watches": unsafe.Offsetof(all.watches),
		"grants.grant": unsafe.Offsetof(all.grant),
		"grants":       unsafe.Sizeof(all),
		"ref.id":       unsafe.Offsetof(r.id), "ref.keys": unsafe.Offsetof(r.keys), "ref": unsafe.Sizeof(r),
	}
	asserted := regexp.MustCompile(`_Static_assert\((?:offsetof|sizeof)\(struct pwt_(\w+)(?:, (\w+))?\) == (\d+)`)
	for _, m := range asserted.FindAllStringSubmatch(string(text), -1) {
		name := m[1]
		if m[2] != "" {
			name += "." + m[2]
		}
		if want, ok := layout[name]; !ok || strconv.Itoa(int(want)) != m[3] {
			t.Errorf("%s is at %s in C, %d in Go", name, m[3], want)
		}
		delete(layout, name)
	}
	for name := range layout {
		t.Errorf("no header asserts %s", name)
	}
	if unsafe.Sizeof(entry{}) != 1<<entryShift || unsafe.Sizeof(desc{}) != 1<<descShift {
		t.Error("shifts don't fit the sizes")
	}
}
