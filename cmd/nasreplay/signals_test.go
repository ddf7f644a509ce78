package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"pinwheel/internal/testwait"
	"pinwheel/internal/tools/command/commandtest"
	"pinwheel/trace"
)

// start starts the command, and ends it if the test doesn't.
func start(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := testwait.Command(t, "/proc/self/exe", args...)
	cmd.Env = append(os.Environ(), runEnv+"=1")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

// stat returns the fields of proc_pid_stat(5) that follow the name of a process.
func stat(pid int) []string {
	text, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	_, after, _ := strings.Cut(string(text), ") ")
	return strings.Fields(after)
}

// busy reports whether a process has used some processor time.
func busy(pid int) bool {
	fields := stat(pid)
	if len(fields) <= 11 {
		return false
	}
	ticks, err := strconv.Atoi(fields[11]) // utime
	return err == nil && ticks >= 3
}

// hasEnded reports whether a child that nobody has waited for yet has ended.
func hasEnded(pid int) bool {
	fields := stat(pid)
	return len(fields) == 0 || fields[0] == "Z"
}

// memory is an output of a trace.
type memory struct{ bytes.Buffer }

func (*memory) Commit() error  { return nil }
func (*memory) Discard() error { return nil }

// manyTraces names as many traces as keep merge busy for a while. Those of ranks that recorded nothing are all alike, so
// it is one file.
func manyTraces(t *testing.T) (names []string) {
	t.Helper()
	const ranks = 4000
	var m memory
	w, err := trace.NewWriter(&m, "trace", trace.Header{Ranks: ranks})
	if err == nil {
		err = w.Close()
	}
	name := filepath.Join(t.TempDir(), "empty.pwt")
	if err = errors.Join(err, os.WriteFile(name, m.Bytes(), 0o666)); err != nil {
		t.Fatal(err)
	}
	return slices.Repeat([]string{name}, ranks)
}

func TestSignalsEndEveryCommandAndLeaveNothing(t *testing.T) {
	testwait.SkipUnderRace(t, singleThreaded)
	ranks := strings.Join(manyTraces(t), " ")
	csv := filepath.Join(t.TempDir(), "rank0.csv")
	if err := os.WriteFile(csv, []byte("# mpitrace 2\n# rank 0 of 2 min_bytes 1\n# comm 0 0 1\n30,40,7,8,barrier,,0,0,-2,0,0,0,12\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	long := traces + "lu.D.4.pwt"
	commandtest.NotIgnored(t, unix.SIGINT)
	for _, s := range []syscall.Signal{unix.SIGINT, unix.SIGTERM} {
		for _, line := range []string{
			"merge --out DIR/x/y.pwt " + ranks, "import --out DIR/x/y.pwt " + csv + " FIFO",
			"merge --force --out DIR/old " + ranks, "calibrate --provider sim --rounds 1000000 --out DIR/x/y.json", "compare " + long, "compare --mode real --provider sim " + ftB4,
			"plot --out DIR " + long, "info --threshold 1 " + strings.Repeat(long+" ", 20), "results --out DIR " + long,
		} {
			var dir string
			commandtest.EndsBy(t, s, func() *exec.Cmd {
				dir = t.TempDir()
				fifo := filepath.Join(t.TempDir(), "fifo")
				if err := unix.Mkfifo(fifo, 0o666); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, "old"), []byte("old"), 0o666); err != nil {
					t.Fatal(err)
				}
				cmd := start(t, strings.Fields(strings.NewReplacer("DIR", dir, "FIFO", fifo).Replace(line))...)
				if strings.HasPrefix(line, "merge") || strings.Contains(line, "FIFO") { // which nobody ever writes
					testwait.Until(t, "writing", func() bool {
						partial, _ := filepath.Glob(cmd.Args[slices.Index(cmd.Args, "--out")+1] + ".*.partial")
						return len(partial) == 1 || hasEnded(cmd.Process.Pid) // EndsBy tries again
					})
				} else {
					testwait.Until(t, "busy", func() bool { return busy(cmd.Process.Pid) || hasEnded(cmd.Process.Pid) })
				}
				return cmd
			})
			left, _ := filepath.Glob(dir + "/*")
			if text, err := os.ReadFile(filepath.Join(dir, "old")); err != nil || string(text) != "old" || len(left) != 1 {
				t.Errorf("%.60q, %v: left %q, old is %q, %v", line, s, left, text, err)
			}
		}
	}
}
