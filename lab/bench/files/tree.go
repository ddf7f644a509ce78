package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"
)

// tree has the files that are served.
type tree struct{ dir string }

// openFiles are files of one size.
type openFiles []*os.File

func (f openFiles) close() {
	for _, each := range f {
		_ = each.Close() // only read from
	}
}

// name is that of a copy of the file of n bytes. Two copies differ in nothing but their names.
func name(n int64, copy int) string { return fmt.Sprintf("%d.%d", n, copy) }

// settleTime is how long a file is left alone before it is served: the mapping of one that has just changed is not kept.
const settleTime = 50 * time.Millisecond

// copyOf is the number of the first copy that a way of its own has, of those that take turns. The pages of another one
// are pinned by whatever keeps registrations, and cost less to pin then. There is no room for so many large files.
func copyOf(n int64, way int) int {
	if n > mostCopied {
		return 0
	}
	return 2 * way
}

// mostCopied is the size in bytes of the largest file of which each way has its own copies.
const mostCopied = 64 * mib

// open opens some copies of the file of n bytes, from one of them on. It makes those that are not there.
func (t *tree) open(n int64, first, copies int) (all openFiles, err error) {
	for i := range copies {
		path := filepath.Join(t.dir, name(n, first+i))
		f, err := os.Open(path)
		if errors.Is(err, os.ErrNotExist) {
			if err = makeFile(path, n); err == nil {
				time.Sleep(settleTime)
				f, err = os.Open(path)
			}
		}
		if err != nil {
			all.close()
			return nil, err
		}
		all = append(all, f)
	}
	return all, nil
}

// have makes a copy of the file of n bytes.
func (t *tree) have(n int64, number int) error {
	f, err := t.open(n, number, 1)
	f.close()
	return err
}

func makeFile(path string, n int64) error {
	block := make([]byte, min(n, mib))
	_, _ = rand.NewChaCha8([32]byte{1}).Read(block) // it never fails
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	for left := n; left > 0 && err == nil; left -= mib {
		_, err = f.Write(block[:min(left, mib)])
	}
	return errors.Join(err, f.Close())
}
