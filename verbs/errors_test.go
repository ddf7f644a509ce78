package verbs_test

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"pinwheel/mem"
	"pinwheel/verbs"
)

func TestErrorMatchesKindAndErrnoAndSaysAllInOneLine(t *testing.T) {
	r := mem.Range{Start: 0x1000, End: 0x3000}
	for errno, kind := range map[syscall.Errno]error{
		syscall.ENOMEM:     verbs.ErrPinnedMemory,
		syscall.ENOSPC:     verbs.ErrRegions,
		syscall.EFAULT:     verbs.ErrNotMapped,
		syscall.EPERM:      verbs.ErrNotPermitted,
		syscall.EACCES:     verbs.ErrNotPermitted,
		syscall.ENOSYS:     verbs.ErrUnsupported,
		syscall.EOPNOTSUPP: verbs.ErrUnsupported,
		syscall.EAGAIN:     verbs.ErrBusy,
		syscall.EINTR:      verbs.ErrBusy,
		syscall.EXDEV:      verbs.ErrSystem,
	} {
		err := verbs.Fail("ibv_reg_mr", r, errno)
		if !errors.Is(err, kind) || !errors.Is(err, errno) {
			t.Errorf("%v does not match %v and its errno", err, kind)
		}
		s := err.Error()
		for _, part := range []string{"ibv_reg_mr", "0x1000-0x3000", errno.Error(), kind.Error()} {
			if !strings.Contains(s, part) {
				t.Errorf("%q lacks %q", s, part)
			}
		}
		if strings.Contains(s, "\n") {
			t.Errorf("%q is more than a line", s)
		}
	}
}

func TestAccessIncludesOnlyTheRightsItHas(t *testing.T) {
	const have = verbs.AccessLocalWrite | verbs.AccessRelaxedOrdering
	for a, want := range map[verbs.Access]bool{
		have:                        true,
		verbs.AccessRelaxedOrdering: true,
		verbs.AccessLocalWrite:      false, // ordering would be weaker than asked for
		verbs.AccessRemoteRead | verbs.AccessRelaxedOrdering: false,
	} {
		if got := have.Includes(a); got != want {
			t.Errorf("Includes(%#x) = %v", a, got)
		}
	}
}
