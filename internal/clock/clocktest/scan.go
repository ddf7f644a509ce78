package clocktest

import (
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
)

// ScanNs returns the durations that an argument of a command has, in nanoseconds; none if it is not given.
func ScanNs(t testing.TB, d *datadriven.TestData, key string) (all []int64) {
	t.Helper()
	arg, _ := d.Arg(key)
	for _, s := range arg.Vals {
		v, err := time.ParseDuration(s)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, int64(v))
	}
	return all
}
