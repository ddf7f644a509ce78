package files

import (
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"pinwheel/comm/files/internal/newfile"
)

const (
	// sweepEvery is how often a directory is looked into while uploads go there.
	sweepEvery = time.Hour
	// keepUploads is how long an upload waits for another connection to go on with it.
	keepUploads = 7 * 24 * time.Hour
	// lockTime is more than an upload takes from its first byte to its lock.
	lockTime = time.Minute
	// maxSwept directories are known. After that, all are forgotten, and looked into again.
	maxSwept = 4096
)

// sweeper removes what servers have left that were killed, and uploads that nobody goes on with: from directories in
// which another upload begins. The lock of an upload keeps it.
type sweeper struct {
	now   func() time.Time
	tasks sync.WaitGroup

	// mu protects what follows. It is a leaf.
	mu    sync.Mutex
	swept map[fileKey]time.Time
	busy  bool
	over  bool
}

func newSweeper() *sweeper { return &sweeper{now: time.Now, swept: map[fileKey]time.Time{}} }

// sweep begins to look into a directory that is open, unless that was done lately. One is looked into at a time.
func (s *sweeper) sweep(dir *os.File, key fileKey) {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	last, known := s.swept[key]
	if s.busy || s.over || known && now.Sub(last) < sweepEvery {
		return
	}
	fd, err := unix.Openat(int(dir.Fd()), ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return // most likely no descriptor is left: another upload will come
	}
	if len(s.swept) >= maxSwept {
		clear(s.swept)
	}
	s.swept[key], s.busy = now, true
	s.tasks.Go(func() {
		s.clear(os.NewFile(uintptr(fd), dir.Name()), now)
		s.mu.Lock()
		s.busy = false
		s.mu.Unlock()
	})
}

// clear removes from a directory what nobody needs, and closes it.
func (s *sweeper) clear(dir *os.File, now time.Time) {
	defer dir.Close()
	for {
		names, err := dir.Readdirnames(1024)
		for _, name := range names {
			if isHidden(name) {
				abandon(dir, name, now)
			}
		}
		if err != nil { // mostly the end
			return
		}
	}
}

// abandon removes an upload if nobody writes it or will go on with it.
func abandon(dir *os.File, name string, now time.Time) {
	age := lockTime
	if strings.HasSuffix(name, resumable) {
		age = keepUploads
	}
	newfile.Abandon(dir, name, now.Add(-age))
}

// close waits until nothing is looked into any more.
func (s *sweeper) close() {
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
	s.tasks.Wait()
}
