package uring

import (
	"strings"
	"syscall"
	"testing"

	"pinwheel/mem"
	"pinwheel/verbs"
)

func TestCauseOfAFailedOpen(t *testing.T) {
	for _, c := range []struct {
		op     string
		errno  syscall.Errno
		sysctl string
		want   string // "" for nothing to add
	}{
		{opSetup, syscall.EPERM, "2", "io_uring_disabled is 2"},
		{opSetup, syscall.EPERM, "1", "kernel.io_uring_group"},
		{opSetup, syscall.EPERM, "0", "seccomp"},
		{opSetup, syscall.EPERM, "", "seccomp"}, // before Linux 6.6
		{opSetup, syscall.ENOSYS, "", "built without"},
		{opTable, syscall.EINVAL, "", "older than 5.19"},
		{opSetup, syscall.EINVAL, "", ""},
		{opSetup, syscall.EMFILE, "0", "descriptor"},
		{opSetup, syscall.ENOMEM, "0", ""},
	} {
		got := cause(verbs.Fail(c.op, mem.Range{}, c.errno), c.sysctl)
		if !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%s: %v with io_uring_disabled=%q: %q, want %q", c.op, c.errno, c.sysctl, got, c.want)
		}
	}
}
