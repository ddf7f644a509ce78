package helper

import (
	"testing"

	"golang.org/x/sys/unix"
)

func TestTimeSliceEndsAtATick(t *testing.T) {
	var tick unix.Timespec
	if err := unix.ClockGetres(unix.CLOCK_MONOTONIC_COARSE, &tick); err != nil {
		t.Fatal(err)
	}
	if ns := timeSliceNs(); ns < tick.Nano() || ns%tick.Nano() != 0 || ns > 1e9 {
		t.Errorf("a time slice of %d ns, with ticks of %d ns", ns, tick.Nano())
	}
}
