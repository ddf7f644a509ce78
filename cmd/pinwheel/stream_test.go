package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"pinwheel/internal/testwait"
	"pinwheel/internal/tools/command/commandtest"
)

// - is standard input and output, as for other programs, and ./- is a file.
func TestDashIsStandardInputAndOutput(t *testing.T) {
	testwait.Bound(t)
	there, here := t.TempDir(), t.TempDir()
	s := startServer(t, there, "unix:"+filepath.Join(testwait.ShortDir(t), "s"), "--allow-write")
	content := contents(t, 5<<20)
	run := func(stdin []byte, args ...string) (stdout, stderr string, status int) {
		cmd := testwait.Command(t, binary, args...)
		var out, errs bytes.Buffer
		cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = here, bytes.NewReader(stdin), &out, &errs
		_ = cmd.Run() // the status says it all
		return out.String(), errs.String(), cmd.ProcessState.ExitCode()
	}
	for _, in := range [][]byte{nil, []byte("x"), content} {
		stdout, stderr, status := run(in, "put", "-", s.address+"f")
		if status != 0 || stderr != "" || !strings.HasPrefix(stdout, "standard input: 1 file, ") {
			t.Errorf("put: %d, %q, %q", status, stdout, stderr)
		}
		holds(t, filepath.Join(there, "f"), in)
		stdout, stderr, status = run(nil, "get", s.address+"f", "-")
		if status != 0 || stderr != "" || stdout != string(in) {
			t.Errorf("get: %d, %d bytes of %d, %q", status, len(stdout), len(in), stderr)
		}
	}
	stdout, stderr, _ := run(nil, "get", "--json", s.address+"f", "-")
	if stdout != string(content) || !strings.HasPrefix(stderr, `{"files":1,`) || strings.Count(stderr, "\n") != 1 {
		t.Errorf("get --json: %d bytes, %q", len(stdout), stderr)
	}
	if stdout, stderr, status := run(nil, "get", s.address+"none", "-"); status != 1 || stdout != "" {
		t.Errorf("get of nothing: %d, %q, %q", status, stdout, stderr)
	}
	for _, args := range [][]string{{"get", s.address + "f", "./-"}, {"put", "./-", s.address + "g"}} {
		if stdout, stderr, status := run(nil, args...); status != 0 {
			t.Errorf("%q: %d, %q, %q", args, status, stdout, stderr)
		}
	}
	holds(t, filepath.Join(here, "-"), content)
	holds(t, filepath.Join(there, "g"), content)
}

func TestDashIsRefusedWhereItMakesNoSense(t *testing.T) {
	for line, says := range map[string]string{
		"get -r unix:/s:/d -":         "one called - is ./-",
		"get --resume unix:/s:/f -":   "a file called - is ./-",
		"put -r - unix:/s:/d":         "one called - is ./-",
		"put --resume - unix:/s:/f":   "a file called - is ./-",
		"put --retry 1m - unix:/s:/f": "put a file",
	} {
		usageError(t, line, says)
	}
}

// Whoever reads a part of a file ends the command as it ends others, and a full disk is one line.
func TestStandardOutputThatEnds(t *testing.T) {
	testwait.Bound(t)
	there := t.TempDir()
	write(t, filepath.Join(there, "f"), contents(t, killedBytes))
	s := startServer(t, there, "unix:"+filepath.Join(testwait.ShortDir(t), "s"))
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	cmd := testwait.Command(t, binary, "get", s.address+"f", "-")
	var errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = full, &errs
	_ = cmd.Run() // the status says it all
	oneLine(t, errs.String(), "standard output: no space left on device")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	defer w.Close()
	cmd = testwait.Command(t, binary, "get", s.address+"f", "-")
	cmd.Stdout = w
	_ = cmd.Run()
	if status := cmd.ProcessState.Sys().(interface{ Signal() unix.Signal }); status.Signal() != unix.SIGPIPE {
		t.Errorf("%v", cmd.ProcessState)
	}
}

// A put that waits for standard input ends by a signal, and leaves nothing.
func TestSignalsEndAPutOfStandardInput(t *testing.T) {
	testwait.Bound(t)
	commandtest.NotIgnored(t, unix.SIGINT)
	there := t.TempDir()
	s := startServer(t, there, "unix:"+filepath.Join(testwait.ShortDir(t), "s"), "--allow-write")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	defer r.Close()
	commandtest.EndsBy(t, unix.SIGINT, func() *exec.Cmd {
		cmd := testwait.Command(t, binary, "put", "-", s.address+"f")
		cmd.Stdin = r
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	})
	if have := names(t, there); len(have) > 0 {
		t.Errorf("left %q", have)
	}
}
