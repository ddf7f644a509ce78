package sim

import "time"

// spinBelow is the rest of a wait that is spun through: time.Sleep overshoots
// by 50 us to 1 ms, depending on timer slack and load.
const spinBelow = 100 * time.Microsecond

// wait returns d later. Registering keeps a processor busy, so the end of the
// wait does as well.
func wait(d time.Duration) {
	end := time.Now().Add(d)
	if d > spinBelow {
		time.Sleep(d - spinBelow)
	}
	for time.Now().Before(end) {
	}
}
