package uring

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"pinwheel/verbs"
)

// Probe returns nil if this process can register memory with io_uring, else
// one line that says why not. It opens and closes a ring.
func Probe() error {
	p, err := Open(Options{Rings: 1, Slots: 1})
	if err != nil {
		return err
	}
	return p.Close()
}

// disabledSysctl exists since Linux 6.6; see Documentation/admin-guide/sysctl/kernel.rst.
const disabledSysctl = "/proc/sys/kernel/io_uring_disabled"

// explain adds to a failure of Open what is known of its cause.
func explain(err error) error {
	sysctl, _ := os.ReadFile(disabledSysctl)
	if why := cause(err, strings.TrimSpace(string(sysctl))); why != "" {
		return fmt.Errorf("io_uring unavailable: %s: %w", why, err)
	}
	return fmt.Errorf("io_uring unavailable: %w", err)
}

// cause names the cause of a failed Open; sysctl is the value of kernel.io_uring_disabled.
func cause(err error, sysctl string) string {
	var call *verbs.Error
	errors.As(err, &call)
	errno := errnoOf(err)
	switch {
	case errno == syscall.EPERM && sysctl == "2":
		return "kernel.io_uring_disabled is 2, forbidden for everybody"
	case errno == syscall.EPERM && sysctl == "1":
		return "kernel.io_uring_disabled is 1, and this process is not in kernel.io_uring_group"
	case errno == syscall.EPERM || errno == syscall.EACCES:
		return "a seccomp filter or security module forbids it, as container runtimes do"
	case errno == syscall.ENOSYS:
		return "kernel built without it, or hidden by a seccomp filter"
	case errno == syscall.EINVAL && call.Op == opTable:
		return "kernel older than 5.19, without sparse buffer tables"
	case errno == syscall.EMFILE || errno == syscall.ENFILE:
		return "no file descriptor left"
	}
	return ""
}
