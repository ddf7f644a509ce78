package testwait

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

func TestThreadOfItsOwnIsNeverTheMainThread(t *testing.T) {
	for range 200 {
		var tid, again int
		OnThreadOfItsOwn(func() {
			tid = unix.Gettid()
			runtime.Gosched()
			again = unix.Gettid()
		})
		if tid == unix.Getpid() || tid != again || tid == 0 {
			t.Fatalf("ran on thread %d, then on %d, of process %d", tid, again, unix.Getpid())
		}
	}
}
