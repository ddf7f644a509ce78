// Package testwait bounds what tests wait for, so that none waits for ever: a
// test that has waited too long fails with what it waited for, the state of what it
// tests, and the stacks of all goroutines. The bounds say nothing about how long
// anything takes: they are far beyond that, even on a machine that does much else.
package testwait

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime/pprof"
	"syscall"
	"testing"
	"time"
)

// Limit is how long a test waits for one thing.
const Limit = 2 * time.Minute

var limit = Limit // of this package's own tests another one

// The pause between two looks at a condition grows by an eighth from firstPause to longestPause. Looks take processor
// time from what is waited for, and those at files or processes take about as long as the first pause.
const firstPause, longestPause = 100 * time.Microsecond, time.Millisecond

// Until returns when cond holds. If it does not within Limit the test fails
// with what is waited for, what state returns and all stacks. For the goroutine of the test.
func Until(t testing.TB, what string, cond func() bool, state ...func() any) {
	t.Helper()
	pause := firstPause
	for end := time.Now().Add(limit); !cond(); time.Sleep(pause) {
		if time.Now().After(end) {
			report(t.Name(), state)
			t.Fatalf("never happened: %s", what)
		}
		pause = min(pause+pause/8, longestPause)
	}
}

// Receive returns the next value of c, or the zero value once that is closed.
// If none comes within Limit the test fails as with Until. For the goroutine of the test.
func Receive[T any](t testing.TB, what string, c <-chan T, state ...func() any) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(limit):
		report(t.Name(), state)
		t.Fatalf("never came: %s", what)
		panic("unreachable")
	}
}

// Bound gives the rest of the test, with all that it waits for anywhere, no
// longer than Limit. Beyond that the process ends, as nothing else ends a goroutine
// that waits: with what state returns and all stacks.
func Bound(t testing.TB, state ...func() any) { BoundAt(t, limit, state...) }

// BoundAt is Bound with a limit of the caller, for tests that take long.
// Benchmarks are not bounded: they are asked to take as long as they do.
func BoundAt(t testing.TB, limit time.Duration, state ...func() any) {
	if _, ok := t.(*testing.B); ok {
		return
	}
	name := t.Name()
	timer := time.AfterFunc(limit, func() {
		report(name, state)
		fmt.Fprintf(os.Stderr, "--- FAIL: %s: not over after %v\n", name, limit)
		os.Exit(2)
	})
	t.Cleanup(func() { timer.Stop() })
}

// report writes the stacks first: what is stuck may keep state from answering.
func report(name string, state []func() any) {
	out := os.Stderr
	fmt.Fprintf(out, "%s waits for too long\n", name)
	_ = pprof.Lookup("goroutine").WriteTo(out, 2)
	for _, f := range state {
		answer := make(chan any, 1)
		go func() { answer <- f() }()
		select {
		case s := <-answer:
			fmt.Fprintf(out, "%s: %+v\n", name, s)
		case <-time.After(5 * time.Second):
			fmt.Fprintf(out, "%s: the state can't be had\n", name)
		}
	}
}

// Command is exec.Command whose process lives for Limit at most. Then it gets
// SIGQUIT, for which programs in Go print their stacks, and soon after that SIGKILL;
// who waits for it gets an error, though others have its output open.
func Command(t testing.TB, name string, args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGQUIT) }
	cmd.WaitDelay = limit / 24
	return cmd
}
