package main

import (
	"strings"
	"testing"
)

func TestCostsStandBesideThoseWithoutAWatch(t *testing.T) {
	of := func(mechanism, user, cost string, runs ...float64) line {
		l := line{Cost: cost, Runs: runs, Median: runs[0]}
		l.Mechanism, l.User, l.Kernel = mechanism, user, "6.18"
		return l
	}
	var costs []line
	for _, n := range registeredSizes {
		costs = append(costs, of(unwatched, "root", registrationOf(n), 8000, 4000), of("uffd", "nobody", registrationOf(n), 8800, 4200))
	}
	costs = append(costs, of(unwatched, "root", theHit, 60, 60), of("uffd", "nobody", theHit, 140, 100),
		of("uffd", "nobody", theCheck, 8, 4), of(unwatched, "root", unrelated, 200, 100), of("uffd", "nobody", unrelatedBeside, 204, 102))
	var b strings.Builder
	if err := writePaper(&b, costs); err != nil {
		t.Fatal(err)
	}
	const registration = "+7.5 % (+5.0 % to +10.0 %, 50 % interval)"
	want := "| uffd | nobody | 2 | " + registration + ", " + registration + ", " + registration + " | +0.1 % (+0.1 % to +0.1 %, 50 % interval) |" +
		" +1.0 % (+1.0 % to +1.0 %, 50 % interval) | +2.0 % (+2.0 % to +2.0 %, 50 % interval) |\n"
	if !strings.Contains(b.String(), want) || !strings.Contains(b.String(), "take 8.00 us, 8.00 us, 8.00 us (") {
		t.Errorf("want %q in\n%s", want, b.String())
	}
	if err := writePaper(&b, costs[1:]); err == nil || !strings.Contains(err.Error(), "without a watch") {
		t.Errorf("without what to compare with: %v", err)
	}
}
