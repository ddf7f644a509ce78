package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pinwheel/internal/testwait"
)

// retriedBytes are copied for longer than it takes to see that more is there than may be on its way, and to kill the server.
const retriedBytes = 64 << 20 // 64 MiB

// retried is a copy that loses its server.
type retried struct {
	verb   []string
	source string // a file or a tree
	large  string // a file of retriedBytes in that; empty: it is that itself
}

// shown is what a process says, which is there, too, if the test never ends.
type shown struct{ bytes.Buffer }

func (s *shown) Write(b []byte) (int, error) {
	os.Stderr.Write(b)
	return s.Buffer.Write(b)
}

// retries are copies of each kind.
func retries(t *testing.T) []retried {
	f := filepath.Join(t.TempDir(), "f")
	write(t, f, contents(t, retriedBytes))
	tree := treeOf(t)
	write(t, filepath.Join(tree, "large"), contents(t, retriedBytes))
	return []retried{
		{[]string{"get"}, f, ""}, {[]string{"put"}, f, ""},
		{[]string{"get", "-r"}, tree, "large"}, {[]string{"put", "-r"}, tree, "large"},
	}
}

// hasSome tells whether some of the large file is there, under a hidden name: more than may be on its way, so that some
// of it is there without a gap.
func (c *retried) hasSome(to string) bool {
	const part = 8 << 20 // 8 MiB
	left, _ := filepath.Glob(filepath.Dir(filepath.Join(to, c.large)) + "/.*")
	for _, path := range left {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Size() >= part {
			return true
		}
	}
	return false
}

// lose begins a copy and kills its server when a part is there. It tells whether that was in time.
func (c *retried) lose(t *testing.T, k kind, to, retry string) (s *server, cmd *exec.Cmd, inTime bool) {
	t.Helper()
	remote, served := filepath.Base(c.source), filepath.Dir(c.source)
	local := to
	if c.verb[0] == "put" {
		remote, served, local = filepath.Base(to), filepath.Dir(to), c.source
	}
	s = startServer(t, served, k.listen(t), append(k.args, "--allow-write")...)
	ends := []string{s.address + remote, local}
	if c.verb[0] == "put" {
		ends = []string{local, s.address + remote}
	}
	args := append(append(c.verb, "--retry", retry, "--json"), k.args...)
	cmd = testwait.Command(t, binary, append(args, ends...)...)
	cmd.Stdout, cmd.Stderr = new(bytes.Buffer), new(shown)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	whole := func() bool {
		_, err := os.Stat(filepath.Join(to, c.large))
		return err == nil
	}
	testwait.Until(t, "a part is there", func() bool { return c.hasSome(to) || whole() })
	s.kill()
	return s, cmd, !whole()
}

// The server is killed amid a copy, and comes back at the same address: the copy goes on from there, and ends well.
func TestCopiesGoOnWhenTheServerIsBack(t *testing.T) {
	all := retries(t)
	overKinds(t, func(t *testing.T, k kind) {
		for _, c := range all {
			t.Run(strings.Join(c.verb, " "), func(t *testing.T) {
				t.Parallel()
				testwait.Bound(t)
				testwait.Until(t, "a copy is not faster than the signal", func() bool { return c.goesOn(t, k) })
			})
		}
	})
}

func (c *retried) goesOn(t *testing.T, k kind) bool {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	s, cmd, inTime := c.lose(t, k, to, "1m")
	at := strings.TrimSuffix(strings.TrimSuffix(s.address, "/"), ":")
	startServer(t, s.dir, strings.TrimPrefix(at, "tcp:"), append(k.args, "--allow-write")...)
	if err := cmd.Wait(); err != nil && inTime {
		t.Fatalf("%v: %s", err, cmd.Stderr)
	}
	var r copied
	if err := json.Unmarshal(cmd.Stdout.(*bytes.Buffer).Bytes(), &r); err != nil {
		t.Fatalf("%v: %s", err, cmd.Stdout)
	}
	if !inTime || r.Reconnects == 0 {
		return false
	}
	files := int64(1)
	if c.large != "" {
		files = killedFiles + 1
		if n := wholeFiles(t, to, c.source); n != killedFiles+1 {
			t.Errorf("%d files", n)
		}
	}
	holds(t, filepath.Join(to, c.large), contents(t, retriedBytes))
	if r.Files+r.Unchanged != files || r.Failed > 0 || r.ResumedBytes == 0 {
		t.Errorf("%+v", r)
	}
	if left, _ := filepath.Glob(filepath.Dir(filepath.Join(to, c.large)) + "/.[^.]*"); len(left) > 0 {
		t.Errorf("left %q", left)
	}
	return true
}

// The server does not come back: the copy gives up when its time is over, with one line.
func TestCopiesGiveUpWhenTheServerStaysAway(t *testing.T) {
	const patience = 500 * time.Millisecond
	all := retries(t)
	overKinds(t, func(t *testing.T, k kind) {
		for _, c := range all {
			t.Run(strings.Join(c.verb, " "), func(t *testing.T) {
				t.Parallel()
				testwait.Bound(t)
				testwait.Until(t, "a copy is not faster than the signal", func() bool {
					s, cmd, inTime := c.lose(t, k, filepath.Join(t.TempDir(), "copy"), patience.String())
					err := cmd.Wait()
					if err == nil && !inTime {
						return false
					}
					says := cmd.Stderr.(*shown).String()
					oneLine(t, says, " (it was tried again for 500ms)")
					oneLine(t, says, strings.TrimRight(strings.TrimPrefix(s.address, "tcp:"), "/:")+": is pinwheel serve still running there? ")
					if cmd.ProcessState.ExitCode() != 1 {
						t.Error(cmd.ProcessState)
					}
					return true
				})
			})
		}
	})
}
