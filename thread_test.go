package pinwheel

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"pinwheel/helper"
	"pinwheel/internal/testwait"
)

// The helper is placed near the communication thread, wherever that moves.
func TestMissTellsWhereTheThreadRuns(t *testing.T) {
	testwait.Bound(t)
	cpus, err := helper.AllowedCPUs()
	if err != nil {
		t.Fatal(err)
	}
	if len(cpus) < 2 {
		t.Skip("needs two processors to move between; this process may use one")
	}
	m, th := start(t, Options{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // for good: its affinity is not for others
		for i, cpu := range cpus[:2] {
			var set unix.CPUSet
			set.Set(cpu)
			if err := unix.SchedSetaffinity(0, &set); err != nil {
				t.Error(err)
				return
			}
			transfer(t, th, region(i), 0)
			if got := m.commCPU.Load(); got != int64(cpu) {
				t.Errorf("the thread runs on processor %d and was last seen on %d", cpu, got)
			}
		}
	}()
	<-done
}
