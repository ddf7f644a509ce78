package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"pinwheel/internal/testwait"
)

// terminal is the screen of a pseudoterminal.
type terminal struct {
	*os.File // that a command writes to
	screen   struct {
		sync.Mutex
		bytes.Buffer
	}
	drained sync.WaitGroup
}

func newTerminal(t *testing.T) *terminal {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudoterminal: %v", err)
	}
	t.Cleanup(func() { master.Close() })
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Skipf("no pseudoterminal: %v", err)
	}
	x := &terminal{}
	if x.File, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Skipf("no pseudoterminal: %v", err)
	}
	x.drained.Go(func() { _, _ = io.Copy(writerTo(x.add), master) }) // EIO, when nobody has the other end open
	return x
}

type writerTo func(p []byte)

func (f writerTo) Write(p []byte) (int, error) { f(p); return len(p), nil }

func (x *terminal) add(p []byte) {
	x.screen.Lock()
	defer x.screen.Unlock()
	x.screen.Write(p)
}

func (x *terminal) shows() string {
	x.screen.Lock()
	defer x.screen.Unlock()
	return x.screen.String()
}

// end returns all that was written, when no command writes any more.
func (x *terminal) end() string {
	x.Close()
	x.drained.Wait()
	return x.shows()
}

// Three copies are under way, of a server that has hardly any processor time: the one on a terminal shows how far it is,
// again and again. The one that was told not to, and the one on a pipe, say nothing.
func TestBarIsOnATerminal(t *testing.T) {
	testwait.Bound(t)
	there := t.TempDir()
	content := contents(t, 96<<20)
	write(t, filepath.Join(there, "f"), content)
	s := startServer(t, there, "unix:"+filepath.Join(testwait.ShortDir(t), "s"))
	// Where the test itself is stopped at the wrong moment, the server has all the time that it needs.
	for range 10 {
		shown, slow := copyOnTerminals(t, s, content)
		if !slow {
			continue
		}
		if !strings.Contains(shown, s.address+"f") || !strings.Contains(shown, "B/s)") ||
			strings.Contains(shown, " TB/s)") { // of a file of 96 MiB
			t.Errorf("the bar: %q", shown)
		}
		return
	}
	t.Error("ten copies ended before they had shown a bar twice")
}

// copyOnTerminals returns what the copy on a terminal shows, and whether it showed a bar twice before it ended.
func copyOnTerminals(t *testing.T, s *server, content []byte) (shown string, slow bool) {
	t.Helper()
	signal := func(sig unix.Signal) {
		if err := s.cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
	}
	bar, off := newTerminal(t), newTerminal(t)
	var pipe bytes.Buffer
	var heres []string
	var all []*exec.Cmd
	for _, c := range []struct {
		flag string
		to   io.Writer
	}{{"--progress=auto", bar.File}, {"--progress=off", off.File}, {"--progress=auto", &pipe}} {
		here := t.TempDir()
		cmd := testwait.Command(t, binary, "get", c.flag, s.address+"f", here)
		cmd.Stderr = c.to
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		heres, all = append(heres, here), append(all, cmd)
	}
	ended := func(here string) bool {
		_, err := os.Stat(filepath.Join(here, "f"))
		return err == nil
	}
	testwait.Until(t, "a part of each is there", func() bool {
		return !slices.ContainsFunc(heres, func(here string) bool { return !hasPart(here, 1) && !ended(here) })
	})
	signal(unix.SIGSTOP)
	testwait.Until(t, "a bar, or the end", func() bool {
		signal(unix.SIGCONT)
		signal(unix.SIGSTOP)
		slow = strings.Count(bar.shows(), "%") > 1
		return slow || ended(heres[0])
	}, func() any { return bar.shows() })
	signal(unix.SIGCONT)
	for i, cmd := range all {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
		holds(t, filepath.Join(heres[i], "f"), content)
	}
	if shown := off.end() + pipe.String(); shown != "" {
		t.Errorf("nobody wants %q", shown)
	}
	return bar.end(), slow
}
