package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pinwheel/internal/testwait"
)

// killedFiles are the small files of a tree that is killed; it has a large one, too.
const killedFiles = 400

// treeOf makes a tree whose files say which they are.
func treeOf(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for i := range killedFiles {
		sub := filepath.Join(dir, fmt.Sprint(i%7))
		if err := os.MkdirAll(sub, 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(sub, fmt.Sprint(i)), []byte(strings.Repeat(fmt.Sprint(i, " "), i)))
	}
	write(t, filepath.Join(dir, "large"), contents(t, 8<<20))
	return dir
}

// wholeFiles returns how many regular files a tree has under their own names, all of which must be those of source.
func wholeFiles(t *testing.T, dir, source string) (n int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(d.Name(), ".") {
			return err
		}
		n++
		got, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		want, err := os.ReadFile(filepath.Join(source, strings.TrimPrefix(path, dir)))
		if !bytes.Equal(got, want) {
			t.Errorf("%s has %d bytes of %d", path, len(got), len(want))
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	return n
}

// some tells whether a directory of a tree has some of its files.
func some(dir string) bool {
	have, _ := filepath.Glob(dir + "/3/*")
	return len(have) > 5
}

// Either end is killed while a tree is copied, either way: what is there is whole, and the next copy has the rest.
func TestKilledTreesGoOn(t *testing.T) {
	source := treeOf(t)
	overKinds(t, func(t *testing.T, k kind) {
		for _, c := range []struct{ verb, who string }{{"get", "client"}, {"get", "server"}, {"put", "client"}, {"put", "server"}} {
			t.Run(c.verb+", "+c.who, func(t *testing.T) {
				t.Parallel()
				testwait.Bound(t)
				there, to := source, filepath.Join(t.TempDir(), "copy")
				if c.verb == "put" {
					there = filepath.Dir(to)
				}
				server, listen := append([]string{"--allow-write"}, k.args...), k.listen(t)
				s := startServer(t, there, listen, server...)
				line := func() []string {
					if c.verb == "get" {
						return append([]string{"get", "-r", "--resume", s.address, to}, k.args...)
					}
					return append([]string{"put", "-r", "--resume", source, s.address + "copy"}, k.args...)
				}
				cmd := testwait.Command(t, binary, line()...)
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				testwait.Until(t, "a part of the tree is there", func() bool { return some(to) })
				if c.who == "client" {
					_ = cmd.Process.Kill()
				} else {
					s.kill()
				}
				_ = cmd.Wait() // it may have been faster
				if n := wholeFiles(t, to, source); n < killedFiles+1 && cmd.ProcessState.Success() {
					t.Errorf("success, with %d files", n)
				}
				if c.who == "server" {
					s = startServer(t, there, listen, server...)
				}
				if _, stderr, state := pinwheel(t, strings.Join(line(), " ")); !state.Success() {
					t.Errorf("%v, %q", state, stderr)
				}
				if n := wholeFiles(t, to, source); n != killedFiles+1 {
					t.Errorf("%d files", n)
				}
				if left, _ := filepath.Glob(to + "/.[^.]*"); len(left) > 0 {
					t.Errorf("left %q", left)
				}
			})
		}
	})
}
