package testwait

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// OnThreadOfItsOwn runs f on an OS thread that ends with it, and with what f has changed about that thread: its user,
// its affinity, its filters. It is never the main thread, which does not end before the process does (and which
// /proc/PID shows for the process).
func OnThreadOfItsOwn(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			OnThreadOfItsOwn(f) // elsewhere, as long as this goroutine has the main thread
			runtime.UnlockOSThread()
			return
		}
		f()
	}()
	<-done
}
