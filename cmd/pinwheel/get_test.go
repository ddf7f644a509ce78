package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"pinwheel/internal/outfile/outfiletest"
	"pinwheel/internal/testwait"
	"pinwheel/internal/tools/command/commandtest"
	"pinwheel/verbs/rdma"
)

// startGet begins to get a file of size bytes, and returns when a part of it is there.
func startGet(t *testing.T, s *server, here string, part int64, args ...string) *exec.Cmd {
	t.Helper()
	cmd := testwait.Command(t, binary, append(append([]string{"get"}, args...), s.address+"f", here)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, "a part of the file is there", func() bool {
		if hasPart(here, part) {
			return true
		}
		_, err := os.Stat(filepath.Join(here, "f"))
		return err == nil // too late, on a busy machine
	})
	return cmd
}

// hasPart tells whether a directory has so many bytes of file f.
func hasPart(dir string, bytes int64) bool {
	left, _ := filepath.Glob(dir + "/.f.*.partial")
	for _, path := range left {
		if info, err := os.Stat(path); err == nil && info.Size() >= bytes {
			return true
		}
	}
	return false
}

const killedBytes = 16 << 20 // 16 MiB

// kind is how the two ends of a copy that is killed reach each other.
type kind struct {
	args  []string // of both ends
	parts []int64  // of the file that are there when an end is killed
	local bool     // through shared memory
}

// listen returns where a server of this test listens, which no other one does.
func (k *kind) listen(t *testing.T) string {
	t.Helper()
	if k.local {
		return "unix:" + filepath.Join(testwait.ShortDir(t), "s")
	}
	return testwait.Loopback() + ":0"
}

// overKinds runs a test over each transport, over RDMA where there is a device.
func overKinds(t *testing.T, f func(t *testing.T, k kind)) {
	t.Run("shared memory", func(t *testing.T) {
		f(t, kind{nil, []int64{0, 1, killedBytes / 4, killedBytes / 2, killedBytes - 1, killedBytes}, true})
	})
	overTCP := map[string][]string{"TLS": {"--transport", "tcp"}, "sendfile": {"--transport", "tcp", "--trusted-network"}}
	if rdma.Probe() == nil {
		overTCP["RDMA"] = []string{"--transport", "rdma"}
	}
	for what, args := range overTCP {
		t.Run(what, func(t *testing.T) {
			f(t, kind{args, []int64{1, killedBytes / 2, killedBytes}, false})
		})
	}
}

// killed runs a test of each kind in which either end is killed when a part of the file has arrived.
func killed(t *testing.T, f func(t *testing.T, k kind, who string, part int64)) {
	overKinds(t, func(t *testing.T, k kind) {
		for _, who := range []string{"client", "server"} {
			for _, part := range k.parts {
				t.Run(fmt.Sprintf("%s at %d", who, part), func(t *testing.T) {
					t.Parallel()
					testwait.Bound(t)
					f(t, k, who, part)
				})
			}
		}
	})
}

// Whoever is killed, and when: there is no half of a file, and the next copy completes it.
func TestKilledCopiesGoOn(t *testing.T) {
	content := contents(t, killedBytes)
	killed(t, func(t *testing.T, k kind, who string, part int64) {
		there, here := t.TempDir(), t.TempDir()
		write(t, filepath.Join(there, "f"), content)
		listen := k.listen(t)
		s := startServer(t, there, listen, k.args...)
		cmd := startGet(t, s, here, part, append(k.args, "--resume")...)
		if who == "client" {
			_ = cmd.Process.Kill()
		} else {
			s.kill()
		}
		_ = cmd.Wait() // it may have been faster
		if have := names(t, here); slices.Contains(have, "f") {
			holds(t, filepath.Join(here, "f"), content)
		} else if cmd.ProcessState.Success() {
			t.Errorf("success, and it has left %q", have)
		}
		if who == "server" {
			s = startServer(t, there, listen, k.args...)
		}
		line := append([]string{"get --json --resume", s.address + "f", here}, k.args...)
		if stdout, stderr, state := pinwheel(t, strings.Join(line, " ")); !state.Success() {
			t.Errorf("%v, %q, %q", state, stdout, stderr)
		}
		holds(t, filepath.Join(here, "f"), content)
		if have := names(t, here); len(have) != 1 {
			t.Errorf("left %q", have)
		}
	})
}

func TestKilledUploadsGoOn(t *testing.T) {
	content := contents(t, killedBytes)
	source := filepath.Join(t.TempDir(), "f")
	write(t, source, content)
	killed(t, func(t *testing.T, k kind, who string, part int64) {
		there := t.TempDir()
		args, listen := append([]string{"--allow-write"}, k.args...), k.listen(t)
		s := startServer(t, there, listen, args...)
		cmd := testwait.Command(t, binary, append([]string{"put", "--resume", source, s.address + "f"}, k.args...)...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		testwait.Until(t, "a part of the file is there", func() bool {
			entries, _ := os.ReadDir(there)
			for _, e := range entries {
				if info, err := e.Info(); err == nil && info.Size() >= part {
					return true
				}
			}
			return false
		})
		if who == "client" {
			_ = cmd.Process.Kill()
		} else {
			s.kill()
		}
		_ = cmd.Wait() // it may have been faster
		if slices.Contains(names(t, there), "f") {
			holds(t, filepath.Join(there, "f"), content)
		}
		if who == "server" {
			s = startServer(t, there, listen, args...)
		}
		line := append([]string{"put --resume", source, s.address + "f"}, k.args...)
		if _, stderr, state := pinwheel(t, strings.Join(line, " ")); !state.Success() {
			t.Errorf("%v, %q", state, stderr)
		}
		holds(t, filepath.Join(there, "f"), content)
		if have := names(t, there); len(have) != 1 {
			t.Errorf("left %q", have)
		}
	})
}

func TestSignalsEndACopyAndLeaveNothing(t *testing.T) {
	testwait.Bound(t)
	commandtest.NotIgnored(t, unix.SIGINT)
	there, here := t.TempDir(), t.TempDir()
	write(t, filepath.Join(there, "f"), contents(t, killedBytes))
	s := startServer(t, there, "unix:"+filepath.Join(testwait.ShortDir(t), "s"))
	commandtest.EndsBy(t, unix.SIGINT, func() *exec.Cmd {
		_ = os.Remove(filepath.Join(here, "f")) // of an attempt that was faster than the signal
		return startGet(t, s, here, 1)
	})
	if have := names(t, here); len(have) > 0 {
		t.Errorf("left %q", have)
	}
}

func TestFullDiskIsOneLineAndLeavesTheOldFile(t *testing.T) {
	testwait.Bound(t)
	there, here := t.TempDir(), t.TempDir()
	write(t, filepath.Join(there, "old"), contents(t, 100_000))
	for i := range 20 {
		write(t, filepath.Join(there, fmt.Sprint(i)), contents(t, 1000))
	}
	s := startServer(t, there, "unix:"+filepath.Join(testwait.ShortDir(t), "s"))
	for _, args := range [][]string{
		{"get", s.address + "old", here}, {"get", "-r", s.address, here}, {"get", "--resume", s.address + "old", here},
	} {
		cmd := testwait.Command(t, binary, args...)
		var errs bytes.Buffer
		cmd.Stderr = &errs
		left := outfiletest.OnSmallDisk(t, cmd, here)
		oneLine(t, errs.String(), "no space left on device")
		if cmd.ProcessState.ExitCode() != 1 {
			t.Errorf("%q: %v", args, cmd.ProcessState)
		}
		partial := func(l string) bool { return strings.Contains(l, ".partial") }
		if args[1] == "--resume" {
			left = slices.DeleteFunc(left, partial)
		}
		if args[1] != "-r" && !slices.Equal(left, []string{"./old old"}) || slices.ContainsFunc(left, partial) {
			t.Errorf("%q: left %q", args, left)
		}
	}
}

func TestLimitOfFileSizesIsAFullDisk(t *testing.T) {
	testwait.Bound(t)
	there, here := t.TempDir(), t.TempDir()
	write(t, filepath.Join(there, "f"), contents(t, 64<<20))
	s := startServer(t, there, "unix:"+filepath.Join(testwait.ShortDir(t), "s"))
	// 40 MiB, in the blocks of sh: more than the memory into which the server sends, which is a file, too.
	cmd := testwait.Command(t, "/bin/sh", "-c", `ulimit -f 81920; exec "$0" "$@"`, binary, "get", s.address+"f", here)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	_ = cmd.Run() // the status says it all
	oneLine(t, errs.String(), "/f: after 41943040 bytes: file too large")
	if have := names(t, here); cmd.ProcessState.ExitCode() != 1 || len(have) > 0 {
		t.Errorf("%v, left %q", cmd.ProcessState, have)
	}
}

// A tree with a file that nobody may read: the others are copied, and there is one line.
func TestPartOfATreeFails(t *testing.T) {
	testwait.Bound(t)
	there, here := t.TempDir(), t.TempDir()
	write(t, filepath.Join(there, "a"), []byte("a"))
	write(t, filepath.Join(there, "b"), []byte("b"))
	if err := os.MkdirAll(filepath.Join(here, "a/full"), 0o755); err != nil {
		t.Fatal(err)
	}
	s := startServer(t, there, "unix:"+filepath.Join(testwait.ShortDir(t), "s"))
	stdout, stderr, state := pinwheel(t, "get -r --json "+s.address+" "+here)
	oneLine(t, stderr, "/a: ")
	if state.ExitCode() != 1 || !strings.Contains(stdout, `"files":1,`) || !strings.Contains(stdout, `"failed":1,`) {
		t.Errorf("%v, %q", state, stdout)
	}
	holds(t, filepath.Join(here, "b"), []byte("b"))
}
