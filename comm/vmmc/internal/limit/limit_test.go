package limit

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestOnlySomeLinesAMinuteAreSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w Warnings
		for range 2 {
			var lines []string
			for range 3 * PerMinute {
				w.Say(func(m string) { lines = append(lines, m) }, "again")
			}
			if len(lines) != PerMinute || !strings.Contains(lines[PerMinute-1], "no more") || lines[0] != "again" {
				t.Errorf("%q", lines)
			}
			time.Sleep(time.Minute)
		}
	})
}
