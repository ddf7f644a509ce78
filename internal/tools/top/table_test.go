package top

import (
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	tea "charm.land/bubbletea/v2"

	"pinwheel/internal/tools/monitor"
	"pinwheel/internal/tools/monitor/monitortest"
	"pinwheel/mem"
)

// TestPictures draws nodes that don't exist. Commands of testdata:
//
//	once ranks=N [width=N] [budget=SIZE]                 what is printed without a terminal
//	screen ranks=N width=N height=N [seconds=N] [budget=SIZE] [locale=NAME]
//	                                                     the terminal after some seconds, and then after each
//	                                                     line of keys, if there are any
func TestPictures(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			ranks, width, height, seconds, budget, locale := 0, 0, 24, 75, "inf", "C.UTF-8"
			d.ScanArgs(t, "ranks", &ranks)
			d.MaybeScanArgs(t, "width", &width)
			d.MaybeScanArgs(t, "height", &height)
			d.MaybeScanArgs(t, "seconds", &seconds)
			d.MaybeScanArgs(t, "budget", &budget)
			d.MaybeScanArgs(t, "locale", &locale)
			limit, err := mem.ParseBytes(budget)
			if err != nil {
				t.Fatal(err)
			}
			if limit == mem.Unlimited {
				limit = 0
			}
			look := func(second int) monitor.Look { return arranged(d, monitortest.Node(ranks, float64(second), limit)) }
			if d.Cmd == "once" {
				var b strings.Builder
				if err := Print(&b, look(seconds), width); err != nil {
					t.Fatal(err)
				}
				return b.String()
			}
			s := newScreen(nil, 0, func(name string) string { return map[string]string{"LANG": locale}[name] })
			s.Update(tea.WindowSizeMsg{Width: width, Height: height})
			for second := 1; second <= seconds; second++ {
				s.Update(looked{look: look(second)})
			}
			out := picture(t, s, width, height)
			for keys := range strings.Lines(d.Input) {
				for _, key := range strings.Fields(keys) {
					s.press(key)
				}
				out += "-- " + strings.TrimSpace(keys) + "\n" + picture(t, s, width, height)
			}
			return out
		})
	})
}

// arranged changes a look as the arguments without a value say.
func arranged(d *datadriven.TestData, l monitor.Look) monitor.Look {
	if d.HasArg("silent") { // the first rank for a minute
		l.Jobs[0].Ranks[0].AgeSeconds = 61
	}
	if d.HasArg("idle") { // no helper, no rank, no predictions
		r := &l.Jobs[0].Ranks[0]
		*r = monitor.Rank{Rank: -1, PID: r.PID, Program: "server", RunSeconds: r.RunSeconds}
	}
	if d.HasArg("gone") {
		l.Jobs = nil
	}
	if d.HasArg("vmmc") { // processes at the broker
		l.VMMC = monitortest.Processes()
	}
	if d.HasArg("files") { // servers of files
		l.Files = monitortest.Servers()
	}
	if d.HasArg("unreadable") {
		l.Unreadable = []monitor.Unreadable{{ID: "slurm-4712", Error: "its shared memory makes no sense"}}
	}
	return l
}

// picture returns what is on the screen, which it must fit.
func picture(t *testing.T, s *screen, width, height int) string {
	t.Helper()
	text := s.picture()
	text = strings.NewReplacer(inverse, "", normal, "").Replace(text)
	lines := strings.Split(text, "\n")
	if len(lines) != height {
		t.Errorf("%d lines on a screen of %d", len(lines), height)
	}
	for i, l := range lines {
		if n := len([]rune(l)); n > width {
			t.Errorf("line %d has %d columns of %d: %s", i, n, width, l)
		}
		lines[i] = strings.TrimRight(l, " ") + "|" // empty lines would end the output
	}
	return strings.Join(lines, "\n") + "\n"
}

func TestEveryWidthIsKept(t *testing.T) {
	for width := 1; width < 260; width++ {
		s := newScreen(nil, 0, func(string) string { return "" })
		s.Update(tea.WindowSizeMsg{Width: width, Height: 10})
		for second := range 70 {
			s.Update(looked{look: monitortest.Node(4, float64(second), 1<<30)})
		}
		picture(t, s, width, 10)
	}
}

func TestCountsHaveSixDigitsAtMost(t *testing.T) {
	for n, want := range map[float64]string{
		0: "0", 0.04: "0", 0.5: "0.5", 3: "3", 9.96: "10.0", 10: "10", 12.5: "12", 999_999: "999999", 1e6: "1.0M",
		12_345_678: "12.3M", 3e9: "3.0G", 5e14: "500.0T",
	} {
		if got := count(n); got != want {
			t.Errorf("%g: %s, want %s", n, got, want)
		}
	}
}

func TestFailedLookEndsTheView(t *testing.T) {
	s := newScreen(nil, 0, func(string) string { return "" })
	if _, cmd := s.Update(looked{err: monitor.ErrNoJob}); cmd == nil || s.failed == nil {
		t.Errorf("failed %v", s.failed)
	}
}
