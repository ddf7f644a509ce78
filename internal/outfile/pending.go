package outfile

import (
	"os"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"pinwheel/internal/signals"
)

// pending are the files that are neither in their place nor dropped. Its lock is
// held while one gets there, so that a signal comes before or after that.
var pending = struct {
	sync.Mutex
	files   map[*File]struct{}
	arrived chan os.Signal // nil without RemoveOnSignals
}{files: map[*File]struct{}{}}

// deadly are the signals that end a command which has no handlers.
var deadly = []os.Signal{unix.SIGHUP, unix.SIGINT, unix.SIGPIPE, unix.SIGTERM}

// RemoveOnSignals makes SIGHUP, SIGINT, SIGPIPE and SIGTERM remove what is not
// yet in its place before they end this process, as they would without that. It is for
// the main function of a command. While nothing is being written there is no handler.
func RemoveOnSignals() {
	pending.Lock()
	defer pending.Unlock()
	if pending.arrived != nil {
		return
	}
	pending.arrived = make(chan os.Signal, 1)
	go func() {
		s := <-pending.arrived
		pending.Lock() // for good
		for f := range pending.files {
			f.removeTraces()
		}
		signals.End(s.(syscall.Signal))
	}()
}

// await makes f pending.
func (f *File) await() {
	if f.alone {
		return
	}
	pending.Lock()
	defer pending.Unlock()
	pending.files[f] = struct{}{}
	if pending.arrived != nil && len(pending.files) == 1 {
		for _, s := range deadly {
			if !signal.Ignored(s) { // as by nohup(1), or for a shell's job in the background
				signal.Notify(pending.arrived, s)
			}
		}
	}
}

// forget ends what await began. The caller holds pending.
func (f *File) forget() {
	if f.alone {
		return
	}
	delete(pending.files, f)
	if pending.arrived != nil && len(pending.files) == 0 {
		signal.Stop(pending.arrived)
	}
}
