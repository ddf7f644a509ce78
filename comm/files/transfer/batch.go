package transfer

import (
	"errors"
	"sync"

	"pinwheel/comm/files/internal/newfile"
)

// batchFiles become durable together; each has a descriptor.
const batchFiles = 512

// batch makes small files durable together, and then gives them their names. It is safe for concurrent use.
type batch struct {
	done func(*partial, error) // of each file; its folder is still held

	free    chan struct{} // has a token for each batch that may begin: one is filled while another becomes durable
	syncing sync.Mutex    // is held while one does

	// mu protects staged. Whoever stages a first file waits for a token under it, and so do all others.
	mu     sync.Mutex
	staged []*partial
}

func newBatch(done func(*partial, error)) *batch {
	b := &batch{done: done, free: make(chan struct{}, 2)}
	b.free <- struct{}{}
	b.free <- struct{}{}
	return b
}

// add takes a finished file over.
func (b *batch) add(p *partial) {
	b.mu.Lock()
	if len(b.staged) == 0 {
		<-b.free
	}
	b.staged = append(b.staged, p)
	var full []*partial
	if len(b.staged) == batchFiles {
		full, b.staged = b.staged, nil
	}
	b.mu.Unlock()
	b.settle(full)
}

// flush gives what is left its names.
func (b *batch) flush() {
	b.mu.Lock()
	rest := b.staged
	b.staged = nil
	b.mu.Unlock()
	b.settle(rest)
}

// discard removes what is left.
func (b *batch) discard() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.staged {
		b.done(p, errors.Join(errGivenUp, p.discard()))
	}
	b.staged = nil
}

// errGivenUp is the error of files that were there when the copy ended by another.
var errGivenUp = errors.New("given up")

func (b *batch) settle(files []*partial) {
	if len(files) == 0 {
		return
	}
	b.syncing.Lock()
	defer func() {
		b.syncing.Unlock()
		b.free <- struct{}{}
	}()
	all := make([]newfile.File, len(files))
	for i, p := range files {
		all[i] = p.file
	}
	for i, err := range newfile.Sync(all) {
		p := files[i]
		if err != nil {
			b.done(p, errors.Join(p.fault(err), p.discard()))
			continue
		}
		b.done(p, p.rename())
	}
}
