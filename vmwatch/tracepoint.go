package vmwatch

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// attachTracepoint attaches p to a tracepoint of group syscalls, for all processors: the perf event names one only
// because the call requires it. The kernel runs p for as long as the event exists. It is disabled, because to enable it
// on its processor takes an interrupt there, for which the caller waits.
func attachTracepoint(p *ebpf.Program, event string) (io.Closer, error) {
	id, err := tracepointID(event)
	if err != nil {
		return nil, err
	}
	attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_TRACEPOINT, Config: id,
		Sample_type: unix.PERF_SAMPLE_RAW, Sample: 1, Wakeup: 1, Bits: unix.PerfBitDisabled}
	fd, err := unix.PerfEventOpen(&attr, -1, 0, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("perf_event_open: %w", err)
	}
	l, err := link.AttachRawLink(link.RawLinkOptions{Target: fd, Program: p, Attach: ebpf.AttachPerfEvent})
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	return perfLink{l, fd}, nil
}

type perfLink struct {
	link *link.RawLink
	fd   int
}

func (l perfLink) FD() int { return l.link.FD() }

func (l perfLink) Close() error { return errors.Join(l.link.Close(), unix.Close(l.fd)) }

const syscallEvents = "/events/syscalls"

// systemCalls is the directory of the tracepoints of system calls: in the tracefs that is mounted, or in one of our
// own that is mounted nowhere and vanishes with its descriptor (fsmount(2), Linux
// 5.2, needs CAP_SYS_ADMIN). Opened once; kept for further Watchers.
var systemCalls = sync.OnceValues(func() (*os.Root, error) {
	for _, dir := range []string{"/sys/kernel/tracing", "/sys/kernel/debug/tracing"} {
		if root, err := os.OpenRoot(dir + syscallEvents); err == nil {
			return root, nil
		}
	}
	return mountTracefs()
})

func mountTracefs() (*os.Root, error) {
	fs, err := unix.Fsopen("tracefs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("tracefs isn't mounted, and fsopen: %w", err)
	}
	defer unix.Close(fs)
	if err := unix.FsconfigCreate(fs); err != nil {
		return nil, fmt.Errorf("tracefs isn't mounted, and fsconfig: %w", err)
	}
	mnt, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("tracefs isn't mounted, and fsmount: %w", err)
	}
	defer unix.Close(mnt)
	return os.OpenRoot("/proc/self/fd/" + strconv.Itoa(mnt) + syscallEvents)
}

func tracepointID(event string) (uint64, error) {
	root, err := systemCalls()
	if err != nil {
		return 0, err
	}
	b, err := root.ReadFile(event + "/id")
	if err != nil {
		return 0, fmt.Errorf("tracepoint id: %w", err)
	}
	return strconv.ParseUint(strings.TrimSpace(string(b)), 10, 64)
}
