package vmwatch

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// errPreemptible: a kernel that preempts its own code can switch away from a
// task inside a BPF program, and while it is away skips that program for every
// other task of that processor (kernel/bpf/trampoline.c, bpf_trampoline_enter;
// kernel/trace/bpf_trace.c, trace_call_bpf): their changes would go unseen.
// Raw tracepoints, which run with preemption disabled, aren't affected.
var errPreemptible = errors.New("this kernel may skip a BPF program whose other run was preempted (boot with " +
	"preempt=voluntary, or use tp)")

// checkPreemption fails with errPreemptible unless it can tell that kernel
// code isn't preempted. It asks once.
var checkPreemption = sync.OnceValue(func() error {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return fmt.Errorf("uname: %w", err)
	}
	model := preemptionModel(os.DirFS("/"), unix.ByteSliceToString(u.Release[:]), unix.ByteSliceToString(u.Version[:]))
	if model == "none" || model == "voluntary" {
		return nil
	}
	return fmt.Errorf("%w: its preemption model is %s", errPreemptible, model)
})

// preemptionModel returns none, voluntary, full, lazy, rt or unknown: what the
// kernel says in debugfs, or what it was built and booted with.
func preemptionModel(root fs.FS, release, version string) string {
	switch {
	case strings.Contains(version, "PREEMPT_RT"):
		return "rt"
	case !strings.Contains(version, "PREEMPT"):
		return "voluntary" // or none
	case !strings.Contains(version, "PREEMPT_DYNAMIC"):
		return "full"
	}
	// "none (voluntary) full lazy": the one in force in parentheses.
	if b, err := fs.ReadFile(root, "sys/kernel/debug/sched/preempt"); err == nil {
		if _, rest, ok := strings.Cut(string(b), "("); ok {
			model, _, _ := strings.Cut(rest, ")")
			return model
		}
	}
	if b, err := fs.ReadFile(root, "proc/cmdline"); err == nil {
		for word := range strings.FieldsSeq(string(b)) {
			if model, ok := strings.CutPrefix(word, "preempt="); ok {
				return model
			}
		}
	}
	return builtModel(root, release)
}

// builtModel is the default of a kernel with PREEMPT_DYNAMIC.
func builtModel(root fs.FS, release string) string {
	model := "unknown"
	_ = readConfig(root, release, func(line string) bool { // without one it stays unknown
		switch line {
		case "CONFIG_PREEMPT_NONE=y":
			model = "none"
		case "CONFIG_PREEMPT_VOLUNTARY=y":
			model = "voluntary"
		case "CONFIG_PREEMPT_LAZY=y":
			model = "lazy"
		case "CONFIG_PREEMPT=y":
			model = "full"
		}
		return model == "unknown"
	})
	return model
}

// readConfig calls line with each line of the kernel's configuration for as long as it returns true.
func readConfig(root fs.FS, release string, line func(string) bool) error {
	f, err := root.Open("proc/config.gz")
	zipped := err == nil
	if !zipped {
		f, err = root.Open("boot/config-" + release)
	}
	if err != nil {
		return err
	}
	defer f.Close()
	var r io.Reader = f
	if zipped {
		if r, err = gzip.NewReader(f); err != nil {
			return err
		}
	}
	lines := bufio.NewScanner(r)
	for lines.Scan() && line(lines.Text()) {
	}
	return lines.Err()
}
