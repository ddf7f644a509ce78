package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pinwheel/comm/files"
	"pinwheel/comm/files/filesbench"
	"pinwheel/internal/measure"
	"pinwheel/internal/testwait"
	"pinwheel/lab/kit"
	"pinwheel/verbs/rdma/rdmatest"
)

// The processes that a measurement starts are those of this binary.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == "receive" || os.Args[1] == "read") {
		main()
		return
	}
	os.Exit(m.Run())
}

// fake is a row that counts how often it is measured.
func fake(name string, once bool, count map[string]int, err *error) row {
	return row{name: name, once: once, measure: func(context.Context, *bench) ([]point, error) {
		count[name]++
		return []point{{X: 1, N: 1, Seconds: float64(count[name])}}, *err
	}}
}

func TestMeasurementGoesOnWhereItWas(t *testing.T) {
	testwait.Bound(t)
	path := filepath.Join(t.TempDir(), "sub", "runs.jsonl")
	count := map[string]int{}
	trouble, lacks := errors.New("trouble"), error(errNotMeasured)
	var none error
	b := &bench{runCmd: &runCmd{Rounds: 2, Budget: time.Hour}}
	all := []row{fake("a", false, count, &none), fake("b", true, count, &none), fake("c", false, count, &trouble), fake("d", false, count, &lacks)}
	s := &state{}
	if err := s.Open(path, kit.Head{Build: "one"}); err != nil {
		t.Fatal(err)
	}
	if err := b.measure(t.Context(), s, all); err == nil || !strings.Contains(err.Error(), "2 measurements failed") {
		t.Errorf("what failed: %v", err)
	}
	if len(s.failures()) != 4 || count["a"] != 2 || count["b"] != 1 || count["c"] != 2 {
		t.Errorf("%v, %+v", count, s.Lines)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(`{"row":"a","round":7,"poi`); err != nil { // it is killed
		t.Fatal(err)
	}
	s.Close()

	s = &state{}
	if err := s.Open(path, kit.Head{Build: "one"}); err != nil {
		t.Fatal(err)
	}
	trouble = nil
	b.Rounds = 3
	if err := b.measure(t.Context(), s, all); err != nil {
		t.Error(err)
	}
	s.Close()
	if s.rounds() != 3 || count["a"] != 3 || count["b"] != 1 || count["c"] != 5 || len(s.failures()) != 3 {
		t.Errorf("%d rounds, %v, %+v", s.rounds(), count, s.failures())
	}
	if e, err := s.estimate(1, seconds, "a"); err != nil || e.Median != 2 {
		t.Errorf("%+v, %v", e, err)
	}

	s = &state{}
	if err := s.Open(path, kit.Head{Build: "two"}); err != nil || len(s.Lines) != 0 {
		t.Errorf("another build: %v, %+v", err, s.Lines)
	}
	b.Budget = -1
	if err := b.measure(t.Context(), s, all); err != nil || len(s.Lines) != 0 {
		t.Errorf("without time: %v, %+v", err, s.Lines)
	}
	s.Close()
}

// measured is a state in which everything is as it must be.
func measured() *state {
	s := &state{}
	s.Head = kit.Head{Version: "v1", Date: "2026-01-02"}
	for round := range 2 {
		add := func(row string, points ...point) {
			s.Lines = append(s.Lines, line{Row: row, Round: round, Points: points})
		}
		sized := func(row string, mibPerSec float64, sizes ...int64) {
			var points []point
			for _, n := range sizes {
				points = append(points, point{X: n, N: 1, Seconds: float64(n) / mib / mibPerSec, PeakBytes: mib, MostBytes: mib})
			}
			add(row, points...)
		}
		sized("device/anonymous", 1000, 64*mib)
		sized("device/anonymous, 1 x 256 KiB", 500, 64*mib)
		sized("device/anonymous, 4 x 64 KiB", 990, 64*mib)
		sized("4-pipes/1 pipe", 700, mib, 64*mib)
		sized("4-pipes/2 pipes", 900, mib, 64*mib)
		for _, figure := range []string{buffers, sendfileBufs} {
			var points []point
			for i := range pipesAndPages {
				points = append(points, point{X: int64(i), N: 1, Label: "label", Seconds: 16 / 960.0, PeakBytes: 5, MostBytes: 10})
			}
			add(figure, points...)
		}
		for _, figure := range []string{allCold, allHot, wholeGets} {
			for i, strategy := range everyStrategy(figure) {
				sized(strategy.row, float64(500+i*100), 1, kib, gib)
			}
		}
		for _, when := range []string{atOnce, later} {
			add(secondGet+"/"+when, point{X: 1, Registrations: 16}, point{X: 2})
		}
		for _, by := range []string{files.ByRDMA, files.ByMemory, files.ByTLS} {
			add(manyGets+"/"+by, point{X: manyClients, Seconds: 1, Clients: []int64{100, 109}, PeakBytes: manyBudget, MostBytes: manyBudget})
		}
		for _, w := range filesbench.Ways() {
			seconds := map[bool]float64{false: 1, true: 0.25}[strings.Contains(w.Name, "shared memory")]
			add(copyRow(w), point{X: mib, N: 1, Seconds: seconds})
		}
	}
	return s
}

func TestClaimsAreJudged(t *testing.T) {
	for _, c := range measured().claims() {
		if !c.Holds() {
			t.Errorf("%s: %s, must be %s", c.What, c.Got(), c.Want())
		}
	}
	for _, c := range (&state{}).claims() {
		if c.Holds() || c.Got() != errNotMeasured.Error() {
			t.Errorf("nothing was measured, but %s: %s", c.What, c.Got())
		}
	}
	for what, spoil := range map[string]func(*line){
		"two pipes": func(l *line) {
			if l.Row == "4-pipes/2 pipes" {
				l.Points[1].Seconds *= 1.2
			}
		},
		"pipelined to the most": func(l *line) {
			if l.Row == "device/anonymous" {
				l.Points[0].Seconds /= 1.1
			}
		},
		"own messages to the most": func(l *line) {
			if l.Row == "device/anonymous, 4 x 64 KiB" {
				l.Points[0].Seconds *= 1.1
			}
		},
		"sendfile to the device's own": func(l *line) {
			if l.Row == sendfileBufs {
				for i, each := range pipesAndPages {
					if bufferBytes(each) == enoughBytes {
						l.Points[i].Seconds *= 1.1
					}
				}
			}
		},
		"cold file": func(l *line) {
			if l.Row == "10-cold/auto" {
				l.Points[0].Seconds *= 1.5
			}
		},
		"chunk x depth":      func(l *line) { l.Points[0].PeakBytes = l.Points[0].MostBytes + 1 },
		"after transfers":    func(l *line) { l.Points[0].LeftBytes = 1 },
		"second get":         func(l *line) { l.Points[len(l.Points)-1].Registrations = 1 },
		"rdma: bytes of one": func(l *line) { l.Points[0].Clients = []int64{100, 111} },
		"rdma: registered":   func(l *line) { l.Points[0].PeakBytes = l.Points[0].MostBytes + 1 },
		"rdma: errors":       func(l *line) { l.Points[0].Errors = 1 },
		"faster than by TCP": func(l *line) { l.Points[0].Seconds = 1 },
	} {
		s := measured()
		for i := range s.Lines {
			spoil(&s.Lines[i])
		}
		if !slices.ContainsFunc(s.claims(), func(c measure.Claim) bool { return strings.Contains(c.What, what) && !c.Holds() }) {
			t.Errorf("%s: all holds: %+v", what, s.claims())
		}
	}
}

func TestPageHasAllThatWasMeasured(t *testing.T) {
	dir := t.TempDir()
	s := measured()
	s.Lines = append(s.Lines, line{Row: "10-hot/auto", Round: 2, Failed: "no luck"})
	if err := s.write(dir); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(dir, pageFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Pinwheel v1, 2026-01-02.", "| anonymous | 1000", "(live/7-buffers.svg)", "| 1 GiB | 500 | 600 | 700 | 800 | 900 |",
		"| rdma | 1 |", "- 10-hot/auto, round 3: no luck",
	} {
		if !strings.Contains(string(page), want) {
			t.Errorf("no %q in\n%s", want, page)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, pictures, "3-pages.svg")); err == nil {
		t.Error("a figure of nothing was drawn")
	}
}

// What lies in results/files is what this build makes of the runs there.
func TestPagesAreThoseOfTheRuns(t *testing.T) {
	committed := filepath.Join("..", "..", "..", "results", "files")
	for _, p := range []struct {
		runs, page, pictures string
		write                func(s *state, dir string) error
	}{
		{"live.jsonl", pageFile, pictures, (*state).write},
		{"nfs.jsonl", guestPage, guestPictures, (*state).writeGuest},
	} {
		var s state
		if err := s.Read(filepath.Join(committed, p.runs)); err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		if err := p.write(&s, dir); err != nil {
			t.Fatal(err)
		}
		written, err := filepath.Glob(filepath.Join(dir, p.pictures, "*.svg"))
		if err != nil {
			t.Fatal(err)
		}
		there, err := filepath.Glob(filepath.Join(committed, p.pictures, "*.svg"))
		if err != nil || len(there) != len(written) {
			t.Errorf("%d figures in results/files/%s, not %d, %v", len(there), p.pictures, len(written), err)
		}
		for _, path := range append(written, filepath.Join(dir, p.page)) {
			got, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			name, err := filepath.Rel(dir, path)
			if err != nil {
				t.Fatal(err)
			}
			want, err := os.ReadFile(filepath.Join(committed, name))
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("results/files/%s is of other runs (%v): make bench-files-page", name, err)
			}
		}
	}
}

// small has rows measure something, as fast as can be.
func small(t *testing.T) *bench {
	testwait.Bound(t)
	t.Setenv(tokenEnv, strings.Repeat("token", 8))
	dir, err := os.MkdirTemp("", "bench") // the paths of sockets are short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	b := &bench{
		runCmd:   &runCmd{Rounds: 1, Slice: time.Microsecond, Clients: time.Microsecond, Largest: 4 * mib, Small: 10},
		tree:     &tree{dir},
		lifetime: context.Background(),
	}
	t.Cleanup(func() {
		if err := b.close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func TestClientsOfAServerAreMeasured(t *testing.T) {
	for _, by := range []string{files.ByMemory, files.ByTLS} {
		b := small(t)
		points, err := many(t.Context(), b, by)
		if err != nil || len(points) != 1 || points[0].N < manyClients || len(points[0].Clients) != manyClients || points[0].Errors != 0 {
			t.Errorf("%s: %+v, %v", by, points, err)
		}
	}
}

func TestRDMARowsMeasure(t *testing.T) {
	rdmatest.Need(t)
	b := small(t)
	for _, r := range rows() {
		if strings.HasPrefix(r.name, copies+"/") || strings.HasPrefix(r.name, manyGets+"/") && r.name != manyGets+"/rdma" {
			continue
		}
		points, err := r.measure(t.Context(), b)
		if err != nil {
			t.Errorf("%s: %v", r.name, err)
			continue
		}
		for _, p := range points {
			if p.N < 1 || !(p.Seconds > 0) {
				t.Errorf("%s: %+v", r.name, p)
			}
		}
		last := points[len(points)-1]
		switch r.name {
		case "4-pipes/2 pipes", "6-sendfile-pipes/2 pipes":
			if last.X != 4*mib || last.Registrations != 4*int64(last.N) || last.PeakBytes > 2*mib || last.LeftBytes != 0 {
				t.Errorf("%s: %+v", r.name, last)
			}
		case "2-naive/registered":
			if last.Registrations != 0 || last.CopiedBytes != 0 {
				t.Errorf("%s: %+v", r.name, last)
			}
		case "10-hot/auto": // where the helper may release some, or all
			if last.Hits+last.Registrations == 0 || last.CopiedBytes != 0 {
				t.Errorf("%s: %+v", r.name, last)
			}
		case "10-cold/auto":
			if last.Registrations == 0 && last.CopiedBytes == 0 {
				t.Errorf("%s: %+v", r.name, last)
			}
		case secondGet + "/" + atOnce:
			// Each of its chunks is a hit or a miss: the helper releases what it may, between the two also all of it.
			if points[0].Registrations == 0 || points[1].Registrations+points[1].Hits != points[0].Registrations {
				t.Errorf("%s: %+v", r.name, points)
			}
		}
	}
}

func TestRowsAreThereOnce(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range rows() {
		if seen[r.name] {
			t.Errorf("%s is there twice", r.name)
		}
		seen[r.name] = true
	}
}
