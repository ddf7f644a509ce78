package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"pinwheel/internal/testwait"
)

// server is a pinwheel serve that runs until the test ends.
type server struct {
	dir     string // that is served
	address string // as get, put and ls want it, without a path
	cmd     *exec.Cmd
	out     *bufio.Reader
}

// socketDir returns a directory whose path is short enough for sockets. Commands that are killed leave there what they
// leave.
func socketDir(t *testing.T) string {
	t.Helper()
	dir := testwait.ShortDir(t)
	t.Setenv("TMPDIR", dir)
	return dir
}

func startServer(t *testing.T, dir, listen string, args ...string) *server {
	t.Helper()
	return runServer(t, dir, serverCommand(t, dir, listen, args...))
}

func serverCommand(t *testing.T, dir, listen string, args ...string) *exec.Cmd {
	cmd := testwait.Command(t, binary, append([]string{"serve", dir, "--json", "--listen", listen}, args...)...)
	cmd.Stderr = os.Stderr
	return cmd
}

// runServer starts a serverCommand.
func runServer(t *testing.T, dir string, cmd *exec.Cmd) *server {
	t.Helper()
	s := &server{dir: dir, cmd: cmd}
	out, err := s.cmd.StdoutPipe()
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.cmd.Process.Kill(); _ = s.cmd.Wait() })
	s.out = bufio.NewReader(out)
	line, err := s.out.ReadBytes('\n')
	var began struct {
		Dir       string
		Addresses []string
	}
	if err == nil {
		err = json.Unmarshal(line, &began)
	}
	if err != nil || began.Dir != dir || len(began.Addresses) != 1 {
		t.Fatalf("it says %q, %v", line, err)
	}
	if s.address = began.Addresses[0] + "/"; !strings.HasPrefix(s.address, "tcp:") {
		s.address = began.Addresses[0] + ":/"
	}
	return s
}

// kill ends the server without warning.
func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

func contents(t *testing.T, n int) []byte {
	t.Helper()
	return bytes.Repeat([]byte("0123456789abcdef~"), n/17+1)[:n]
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
}

func holds(t *testing.T, path string, want []byte) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s has %d bytes of %d, equal %v, %v", path, len(got), len(want), bytes.Equal(got, want), err)
	}
}

func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}
