package mlock

import (
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"pinwheel/mem"
	"pinwheel/verbs"
	"pinwheel/verbs/verbstest"
)

func TestErrnosAreToldApart(t *testing.T) {
	page := mem.PageSize
	b, r := verbstest.Map(t, 8*page)
	verbstest.Unmap(t, verbstest.Part(r, 7*page, page))
	if err := unix.Mprotect(b[5*page:6*page], unix.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	fine := verbstest.Part(r, 0, 5*page)
	locked := verbstest.StatusBytes(t, "VmLck")
	for name, c := range map[string]struct {
		errno syscall.Errno
		r     mem.Range
		limit int64
		want  error
	}{
		"hole":                       {syscall.ENOMEM, r, mem.Unlimited, verbs.ErrNotMapped},
		"hole, and over the limit":   {syscall.ENOMEM, r, 0, verbs.ErrNotMapped},
		"inaccessible page":          {syscall.ENOMEM, verbstest.Part(r, 0, 6*page), mem.Unlimited, verbs.ErrNotMapped},
		"over the limit":             {syscall.ENOMEM, fine, locked + int64(5*page) - 1, verbs.ErrPinnedMemory},
		"too many mappings, by rest": {syscall.ENOMEM, fine, locked + int64(5*page), verbs.ErrRegions},
		"no memory now":              {syscall.EAGAIN, fine, mem.Unlimited, verbs.ErrBusy},
		"no right":                   {syscall.EPERM, fine, 0, verbs.ErrNotPermitted},
		"no address":                 {syscall.EINVAL, fine, 0, verbs.ErrNotMapped},
		"whatever":                   {syscall.EXDEV, fine, 0, verbs.ErrSystem},
	} {
		if got := kindOf(c.errno, c.r, c.limit); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
