package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"pinwheel/lab/testbed/live/stack"
)

const sharedMemory = "/dev/shm"

// adoptOrphans makes processes whose parents have ended children of this one, so
// that none that a job leaves behind is lost sight of.
func adoptOrphans() error {
	return os.NewSyscallError("prctl", unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
}

// before is what there was in /dev/shm before a job.
type before map[string]bool

func lookBefore() before {
	b := before{}
	for _, name := range filesIn(sharedMemory) {
		b[name] = true
	}
	return b
}

func filesIn(dir string) (names []string) {
	entries, _ := os.ReadDir(dir) // where it is missing there is nothing
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// settle is how long processes that know of the job's end may take to end, and
// the kernel to unmap what they had, on a machine that does much else. Tests wait for less.
var settle = 20 * time.Second

// left returns what a job has left behind, for people: processes, which it
// kills, and files in /dev/shm that nobody has open, which it removes.
func (b before) left() (what []string) {
	var processes []int
	for end := time.Now().Add(settle); ; time.Sleep(10 * time.Millisecond) {
		if processes = reap(); len(processes) == 0 || time.Now().After(end) {
			break
		}
	}
	for _, pid := range processes {
		what = append(what, fmt.Sprintf("process %d %s", pid, commandOf(pid)))
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended by itself
	}
	for len(reap()) > 0 {
		time.Sleep(10 * time.Millisecond)
	}
	return append(what, b.leftFiles()...)
}

// reap waits for children that have ended, and returns those below this process that have not.
func reap() (running []int) {
	for {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		if err != nil || pid <= 0 {
			return stack.Descendants(os.Getpid())
		}
	}
}

func commandOf(pid int) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // nothing if it has ended
	return strings.TrimSpace(strings.ReplaceAll(string(text), "\x00", " "))
}

func (b before) leftFiles() (what []string) {
	names := slices.DeleteFunc(filesIn(sharedMemory), func(name string) bool { return b[name] })
	if len(names) == 0 {
		return nil
	}
	open := inUse() // by jobs of others
	for _, name := range names {
		path := filepath.Join(sharedMemory, name)
		if _, err := os.Lstat(path); err == nil && !open[path] {
			what = append(what, path)
			_ = os.Remove(path) // the next job should not be blamed
		}
	}
	return what
}

// inUse returns the files in /dev/shm that any process has mapped or open.
func inUse() map[string]bool {
	open := map[string]bool{}
	maps, _ := filepath.Glob("/proc/[0-9]*/maps") // the patterns are good
	for _, path := range maps {
		text, _ := os.ReadFile(path) // it may have ended
		for line := range strings.Lines(string(text)) {
			if i := strings.Index(line, sharedMemory+"/"); i >= 0 {
				open[strings.TrimSpace(line[i:])] = true
			}
		}
	}
	descriptors, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, path := range descriptors {
		if target, err := os.Readlink(path); err == nil && strings.HasPrefix(target, sharedMemory+"/") {
			open[target] = true
		}
	}
	return open
}

// pinned returns the bytes that are pinned on the whole machine and in no
// VmPin: what a process that has ended would have left. ok is false where
// the kernel does not count pinned pages (vmstat, since Linux 5.7).
func pinned() (bytes int64, ok bool) {
	text, err := os.ReadFile("/proc/vmstat")
	if err != nil {
		return 0, false
	}
	counted := 0
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, err := strconv.ParseInt(value, 10, 64)
		switch {
		case err != nil:
		case name == "nr_foll_pin_acquired":
			bytes, counted = bytes+n*int64(os.Getpagesize()), counted+1
		case name == "nr_foll_pin_released":
			bytes, counted = bytes-n*int64(os.Getpagesize()), counted+1
		}
	}
	return bytes - pinnedByProcesses(), counted == 2
}

// pinnedByProcesses is the sum of VmPin, proc_pid_status(5).
func pinnedByProcesses() (bytes int64) {
	files, _ := filepath.Glob("/proc/[0-9]*/status") // the pattern is good
	for _, path := range files {
		text, _ := os.ReadFile(path) // it may have ended
		for line := range strings.Lines(string(text)) {
			var kb int64
			if n, _ := fmt.Sscanf(line, "VmPin: %d kB", &kb); n == 1 {
				bytes += kb << 10
			}
		}
	}
	return bytes
}

// pinnedSlack is for what other programs of the machine pin at the same time.
const pinnedSlack = 64 << 20

// leftPinned says what is pinned now beyond what was at the start, "" if nothing is.
func leftPinned(start int64) string {
	var now int64
	for end := time.Now().Add(2 * settle); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		var ok bool
		if now, ok = pinned(); !ok || now < start+pinnedSlack {
			return ""
		}
	}
	return fmt.Sprintf("%d MiB are pinned on this machine that are in no VmPin, %d MiB at the start", now>>20, start>>20)
}
