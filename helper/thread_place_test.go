package helper

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"pinwheel/internal/clock/clocktest"
	"pinwheel/internal/testwait"
)

// Wherever a helper is placed, it knows whether its rank runs there.
func TestHelperKnowsWhetherItSharesTheProcessorOfItsRank(t *testing.T) {
	testwait.Bound(t)
	runtime.LockOSThread() // for good: the thread ends with this goroutine, and its affinity with it
	var allowed unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil {
		t.Fatal(err)
	}
	var cpus []int
	for cpu := range 1024 {
		if allowed.IsSet(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	if len(cpus) < 2 {
		t.Skip("this process may use one processor only")
	}
	first, last := cpus[0], cpus[len(cpus)-1]
	if err := pinThread(first); err != nil {
		t.Fatal(err)
	}
	comm, k := AnyCPU, newKeeper(0)
	d := newDriver(&Thread{opt: ThreadOptions{Decider: k, Registrar: &journal{}, Clock: &clocktest.Fake{}, CPU: first,
		CommCPU: func() int { return comm }, cpuNs: ownCPUNs, runDelay: runDelayFile{}.read}})
	for _, step := range []struct {
		what      string
		to        Placement
		is, isNot int
	}{
		{"where it began", Placement{CPU: first}, first, last},
		{"moved", Placement{CPU: last}, last, first},
		{"left to the kernel, which does not move it", Placement{CPU: AnyCPU}, last, first},
		{"a processor that is not there", Placement{CPU: 1023}, last, 1023},
		{"back", Placement{CPU: first}, first, last},
	} {
		d.place.Store(&step.to)
		d.move(&step.to)
		for cpu, want := range map[int]bool{step.is: true, step.isNot: false, AnyCPU: false} {
			if comm = cpu; d.sharesCPU() != want {
				t.Errorf("%s: with its rank on processor %d the helper takes its own for that: %v", step.what, cpu, !want)
			}
		}
	}
}
