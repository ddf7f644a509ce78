package newfile

import (
	"os"
	"sync"

	"go.uber.org/atomic"
	"golang.org/x/sys/unix"
)

// File is a file, or a directory, that is to become durable.
type File struct {
	*os.File
	device uint64 // st_dev of its file system
	opened uint64 // after how many others
}

// Device returns the st_dev of its file system.
func (f File) Device() uint64 { return f.device }

var opens atomic.Uint64

// Opened notes a file that was opened just now, before anything is written to it. device is its st_dev.
func Opened(f *os.File, device uint64) File { return File{f, device, opens.Inc()} }

// fewFiles are so few that fsync(2) of each takes less than syncfs(2), which also waits for what other programs have
// written.
const fewFiles = 4

// Sync makes files durable together, and returns the error of each, in their order. An fsync(2) of each would take
// longer than to write many small ones.
func Sync(files []File) []error {
	errs := make([]error, len(files))
	if len(files) <= fewFiles {
		for i, f := range files {
			errs[i] = f.Sync()
		}
		return errs
	}
	// syncfs(2) tells a descriptor of all errors since that was opened: the oldest one hears of those of all.
	oldest := map[uint64]File{}
	for _, f := range files {
		if o, known := oldest[f.device]; !known || f.opened < o.opened {
			oldest[f.device] = f
		}
	}
	failed := map[uint64]error{}
	for device, f := range oldest {
		failed[device] = os.NewSyscallError("syncfs", unix.Syncfs(int(f.Fd())))
	}
	for i, f := range files {
		errs[i] = failed[f.device]
	}
	return errs
}

// Group makes files of many goroutines durable. Those that come while others become durable do so together, after them.
// The zero value is ready. It is safe for concurrent use.
type Group struct {
	// mu is a leaf.
	mu      sync.Mutex
	waiting []waiter
	busy    bool // somebody makes files durable, and takes those that wait after that
	rounds  int64
}

type waiter struct {
	file File
	done chan error // has room for one
}

// Sync makes a file durable, which must stay open until then.
func (g *Group) Sync(f File) error {
	w := waiter{f, make(chan error, 1)}
	g.mu.Lock()
	g.waiting = append(g.waiting, w)
	first := !g.busy
	g.busy = true
	g.mu.Unlock()
	if first {
		go g.run()
	}
	return <-w.done
}

// run makes durable what waits, until nothing does.
func (g *Group) run() {
	for {
		g.mu.Lock()
		all := g.waiting
		g.waiting = nil
		if g.busy = len(all) > 0; !g.busy {
			g.mu.Unlock()
			return
		}
		g.rounds++
		g.mu.Unlock()
		files := make([]File, len(all))
		for i, w := range all {
			files[i] = w.file
		}
		for i, err := range Sync(files) {
			all[i].done <- err
		}
	}
}
