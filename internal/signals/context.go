package signals

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// impatience is how much later another signal is no part of the first: some come twice at once, as from a shell and
// from timeout(1).
const impatience = time.Second

// Context returns a context that ends with the first signal that would end this process: SIGHUP, SIGINT or SIGTERM,
// unless it is ignored. end stops waiting for them and then, if one came, ends the process by it; the caller has
// cleaned up before. Another signal ends it at once, if it comes a second or more later: the caller may hang. It is for
// the main goroutine of a command that runs until it is told to end.
func Context(parent context.Context) (ctx context.Context, end func()) {
	ctx, cancel := context.WithCancel(parent)
	arrived := make(chan os.Signal, 1)
	for _, s := range []os.Signal{unix.SIGHUP, unix.SIGINT, unix.SIGTERM} {
		if !signal.Ignored(s) { // as by nohup(1)
			signal.Notify(arrived, s)
		}
	}
	came := make(chan syscall.Signal, 1)
	go func() {
		select {
		case s := <-arrived:
			came <- s.(syscall.Signal)
			cancel()
		case <-ctx.Done():
			return
		}
		for first := time.Now(); ; { // until the process ends
			if s := <-arrived; time.Since(first) >= impatience {
				End(s.(syscall.Signal))
			}
		}
	}()
	return ctx, func() {
		signal.Stop(arrived)
		cancel()
		select {
		case s := <-came:
			End(s)
		default:
		}
	}
}
