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

// open opens so many copies of the file of n bytes. It makes those that are not there.
func (t *tree) open(n int64, copies int) (all openFiles, err error) {
	for i := range copies {
		path := filepath.Join(t.dir, name(n, i))
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

// have makes files of these sizes.
func (t *tree) have(sizes []int64) error {
	for _, n := range sizes {
		f, err := t.open(n, 1)
		if err != nil {
			return err
		}
		f.close()
	}
	return nil
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
