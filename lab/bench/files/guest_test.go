package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pinwheel/internal/measure"
	"pinwheel/lab/kit"
)

func TestSecondsAreThoseThatTheCommandPrints(t *testing.T) {
	for name, said := range map[string]string{
		knfsdTCP: "8+0 records in\n8+0 records out\n8388608 bytes (8.4 MB, 8.0 MiB) copied, 0.25 s, 33.6 MB/s\n",
		getRDMA:  `{"files":1,"bytes":8388608,"seconds":0.25,"transport":"rdma"}` + "\n",
		rcopy:    "opening...transferring...closing...done\n8388608 bytes in 0.25 seconds = 0.31 Gb/sec\n",
	} {
		ways := new(guestCmd).ways("10.99.0.1")
		w := ways[slices.IndexFunc(ways, func(w guestWay) bool { return w.name == name })]
		if s, err := w.seconds([]byte(said)); s != 0.25 || err != nil {
			t.Errorf("%s: %v, %v", name, s, err)
		}
		if s, err := w.seconds([]byte("nothing")); err == nil {
			t.Errorf("%s: %v", name, s)
		}
	}
}

// inAGuest is what was measured in a guest, with all as it must be.
func inAGuest() *state {
	s := &state{}
	s.Head = kit.Head{Version: "v1", Date: "2026-01-02"}
	for round := range 6 {
		for _, k := range kindsOfMemory {
			p := point{X: 4 * kib, N: 1, Seconds: 20e-6, Deregister: 10e-6}
			s.Lines = append(s.Lines, line{Row: registration + "/" + k.name, Round: round, Points: []point{p}})
		}
		for _, w := range new(guestCmd).ways("") {
			packets := map[string]int64{knfsdRDMA: 300, getRDMA: 260, rcopy: 280}[w.name]
			p := point{X: mib, N: 1, Seconds: float64(round + 1), Packets: packets}
			s.Lines = append(s.Lines, line{Row: w.row(), Round: round, Points: []point{p}})
		}
	}
	return s
}

func TestGuestIsMeasuredInWhole(t *testing.T) {
	s, all := inAGuest(), registrationRows()
	if err := s.whole(all, 6); err != nil {
		t.Error(err)
	}
	if err := s.whole(all, 7); err == nil {
		t.Error("there is no seventh round")
	}
	s.Lines[0].Failed = "no luck"
	if err := s.whole(all, 6); err == nil {
		t.Error("a row has failed")
	}
}

func TestPageOfAGuestHasAllThatWasMeasured(t *testing.T) {
	dir := t.TempDir()
	if err := inAGuest().writeGuest(dir); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(dir, guestPage))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Pinwheel v1, 2026-01-02.", "Medians of 6 rounds", "A file of 1 MiB", "take 256 packets",
		"| pinwheel get, RDMA | 3.50 (1.00 to 6.00) | 0.3 | 260 (260 to 260) | 4 |", "| pinwheel get, TLS | 3.50 (1.00 to 6.00) | 0.3 | 0 (0 to 0) |  |",
		"(nfs/9-registration.svg)", "| 4 KiB | 20 (20 to 20) | 10 (10 to 10) |",
	} {
		if !strings.Contains(string(page), want) {
			t.Errorf("no %q in\n%s", want, page)
		}
	}
}

func TestClaimsAboutPacketsAreJudged(t *testing.T) {
	holding := func(s *state) (n int) {
		for _, c := range s.guestClaims() {
			if c.Holds() {
				n++
			}
		}
		return n
	}
	if n, all := holding(inAGuest()), inAGuest().guestClaims(); n != len(all) {
		t.Errorf("%d hold: %+v", n, all)
	}
	if n := holding(&state{}); n != 0 {
		t.Errorf("nothing was measured, and %d hold", n)
	}
	for what, packets := range map[string]int64{"to those of the file": 270, "to those of rcopy": 281, "to those of knfsd": 301} {
		s := inAGuest()
		for i := range s.Lines {
			if l := &s.Lines[i]; l.Row == (guestWay{name: getRDMA}).row() {
				l.Points[0].Packets = packets
			}
		}
		if !slices.ContainsFunc(s.guestClaims(), func(c measure.Claim) bool { return strings.Contains(c.What, what) && !c.Holds() }) {
			t.Errorf("%s: %+v", what, s.guestClaims())
		}
	}
}
