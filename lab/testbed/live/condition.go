package main

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"pinwheel/lab/testbed/live/stack"
)

// condition is something under which a few programs run in every combination, beside what policies and stacks are.
type condition struct {
	name     string
	programs []string // those that run under it, by two ranks; nil is all
	args     string   // of these programs, "" for the usual ones
	preload  string   // pattern of a library for the ranks
	environ  []string // more variables
	command  string   // that disturb needs
	packages string   // of Debian, that have the library or the command
	// disturb does something to a rank that runs. It returns in one line what went wrong.
	disturb func(pid int) error
}

// uffd hears of changes of mappings from the process itself: what an allocator does in a thread of its own is
// waited for.
const uffd = "PINWHEEL_WATCH=uffd"

// enduring are arguments with which turns goes on for longer than a disturbance takes.
const enduring = "600 131072"

var allocated = []string{"pinned", "renewed", "threads", "turns"}

// conditions; the first is that of every other run.
var conditions = []condition{
	{},
	{name: "uffd", programs: allocated, environ: []string{uffd}},
	{name: "jemalloc", programs: allocated, environ: []string{uffd},
		preload: "/usr/lib/*/libjemalloc.so.2", packages: "libjemalloc2"},
	{name: "tcmalloc", programs: allocated, environ: []string{uffd},
		preload: "/usr/lib/*/libtcmalloc_minimal.so.4", packages: "libtcmalloc-minimal4"},
	{name: "mimalloc", programs: allocated, environ: []string{uffd},
		preload: "/usr/lib/*/libmimalloc.so.2", packages: "libmimalloc2.0"},
	{name: "stopped", programs: []string{"turns"}, args: enduring, disturb: stopAndGoOn},
	{name: "gdb", programs: []string{"turns"}, args: enduring, disturb: debug, command: "gdb", packages: "gdb"},
}

// possible reports whether a combination is one for the condition.
func (c condition) possible(all combination) bool {
	return c.name == "" || slices.Contains(c.programs, all.program.name) && all.ranks == 2 &&
		(all.policy == "pinwheel" || all.policy == disabled)
}

// library returns the path of what is preloaded, "" if nothing is.
func (c condition) library() string {
	found, _ := filepath.Glob(c.preload) // the pattern is good
	if len(found) == 0 {
		return ""
	}
	return found[0]
}

// missing says in one line why the condition can't be had, "" if it can.
func (c condition) missing() string {
	if c.preload != "" && c.library() == "" {
		return fmt.Sprintf("there is no %s (apt-get install %s)", c.preload, c.packages)
	}
	if _, err := exec.LookPath(cmp.Or(c.command, "true")); err != nil {
		return fmt.Sprintf("%v (apt-get install %s)", err, c.packages)
	}
	return ""
}

// run runs a job under the condition.
func (c condition) run(j stack.Job, limit time.Duration) (stack.Result, error) {
	j.Environ = slices.Concat(j.Environ, c.environ)
	if library := c.library(); library != "" {
		j.Preload = []string{library}
	}
	r, err := j.Start()
	if err != nil {
		return stack.Result{}, err
	}
	end := make(chan struct{})
	wrong := make(chan error, 1)
	go func() { wrong <- c.disturbAll(r.Ranks, j.Ranks, end) }()
	res, err := r.Wait(limit)
	close(end)
	return res, cmp.Or(err, <-wrong)
}

// disturbAll disturbs each rank, one after another, once all of them run.
func (c condition) disturbAll(running func() []int, ranks int, end <-chan struct{}) error {
	if c.disturb == nil {
		return nil
	}
	var pids []int
	for len(pids) < ranks {
		select {
		case <-end:
			return fmt.Errorf("%s: the job was over before all ranks ran", c.name)
		case <-time.After(time.Millisecond):
			pids = running()
		}
	}
	for i, pid := range pids {
		select {
		case <-end:
			return fmt.Errorf("%s: the job was over before process %d, the number %d of its ranks, was disturbed",
				c.name, pid, i)
		default:
		}
		if err := c.disturb(pid); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return nil
}

// stopAndGoOn stops a process some times, until all of its threads have stopped, and lets it go on.
func stopAndGoOn(pid int) error {
	for range 20 {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			return fmt.Errorf("SIGSTOP to %d: %w", pid, err)
		}
		for end := time.Now().Add(settle); !stopped(pid); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				return fmt.Errorf("process %d does not stop", pid)
			}
		}
		if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
			return fmt.Errorf("SIGCONT to %d: %w", pid, err)
		}
	}
	return nil
}

// stopped reports whether no thread of a process runs, proc_pid_stat(5).
func stopped(pid int) bool {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid)) // the pattern is good
	for _, path := range files {
		text, _ := os.ReadFile(path) // it may have ended
		_, state, _ := strings.Cut(string(text), ") ")
		if state != "" && state[0] != 'T' {
			return false
		}
	}
	return true
}

// debug attaches a debugger, which looks at all threads and lets the process go on.
func debug(pid int) error {
	args := []string{"-nx", "-batch", "-p", fmt.Sprint(pid), "-ex", "thread apply all backtrace 3"}
	out, err := exec.Command("gdb", args...).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "detached") {
		return fmt.Errorf("gdb of %d: %v\n%s", pid, err, indented(string(out)))
	}
	return nil
}
