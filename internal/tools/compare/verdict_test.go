package compare

import (
	"fmt"
	"strings"
	"testing"

	"pinwheel/internal/measure"
)

// spread is an estimate of a ratio from six rounds, in per cent of difference.
func spread(median, low, high float64) measure.Estimate {
	return measure.Estimate{Median: 1 + median/100, Low: 1 + low/100, High: 1 + high/100, Coverage: 0.97, N: 6}
}

// examples has an interval for each change.
var examples = map[change]measure.Estimate{
	unknown: spread(2, -4, 9), equal: spread(0.2, -0.5, 0.9), less: spread(-30, -40, -20), more: spread(25, 10, 30),
}

func example(memory, cpu, time change) Versus {
	return Versus{examples[memory], examples[cpu], examples[time]}
}

// judged is a summary of six rounds of a job that Pinwheel manages.
func judged(toCache, toNone, noneToCache Versus) Summary {
	s := Summary{Rounds: 6, Ranks: 2, Managed: 100, Savable: 0.5,
		Beside: []Beside{{Pinwheel, Cache, toCache}, {Pinwheel, None, toNone}, {None, Cache, noneToCache}}}
	for _, m := range Modes {
		s.Modes = append(s.Modes, Totals{Mode: m, AvgPinnedBytes: measure.Estimate{Median: 100 << 20},
			CapturedLive: &measure.Estimate{Median: 0.8, N: 6}})
	}
	return s
}

func TestChangeIsWhatTheIntervalSays(t *testing.T) {
	few := spread(-50, -50, -50)
	few.Coverage = 0.75
	for _, c := range []struct {
		e      measure.Estimate
		margin float64
		want   change
	}{
		{spread(-3, -5, -1.1), timeMargin, less}, {spread(-3, -5, -0.1), timeMargin, less},
		{spread(0, -0.9, 0.9), timeMargin, equal}, {spread(0.5, 0.2, 0.9), timeMargin, equal},
		{spread(0.5, 0.2, 1.4), timeMargin, more}, {spread(39.5, 24.8, 78.2), timeMargin, more},
		{spread(0, -8, 7), timeMargin, unknown}, {spread(0.5, -0.2, 1.4), timeMargin, unknown},
		{spread(0.5, -4, 4.5), memoryMargin, equal}, {spread(0, 0, 0), timeMargin, equal}, {few, timeMargin, unknown},
	} {
		if got := changeOf(c.e, c.margin); got != c.want {
			t.Errorf("%s: %d, want %d", c.e.Percent(), got, c.want)
		}
	}
}

// all are all ways in which three quantities may change.
func all() (list []Versus) {
	for memory := range more + 1 {
		for cpu := range more + 1 {
			for time := range more + 1 {
				list = append(list, example(memory, cpu, time))
			}
		}
	}
	return list
}

func TestRelationFollowsTheRule(t *testing.T) {
	for _, v := range all() {
		n := map[change]int{}
		for _, c := range v.changes() {
			n[c]++
		}
		var want relation
		switch {
		case n[less] > 0 && n[more] > 0:
			want = traded
		case n[unknown] > 0:
			want = unsure
		case n[equal] == 3:
			want = alike
		case n[more] == 0:
			want = better
		case n[less] == 0:
			want = worse
		}
		if got := v.relation(); got != want {
			t.Errorf("%v: %d, want %d", v.changes(), got, want)
		}
	}
}

// No combination of changes against both other ways gets a verdict that a line above it, or an interval, contradicts.
func TestNoVerdictContradictsItsLines(t *testing.T) {
	for _, toCache := range all() {
		for _, toNone := range all() {
			s := judged(toCache, toNone, example(less, more, equal))
			lines := s.Verdict()
			verdict := lines[len(lines)-1]
			cache, none := toCache.relation(), toNone.relation()
			worst := func(r relation) bool { return cache == r || none == r }
			var want string
			switch {
			case worst(worse) || worst(alike):
				want = "Verdict: leave Pinwheel out: "
			case worst(unsure):
				want = "No verdict: "
			case cache == better && none == better:
				want = "Verdict: run this job with Pinwheel."
			default:
				want = "Verdict: a trade: "
			}
			if !strings.HasPrefix(verdict, want) || strings.Count(strings.Join(lines, "\n"), "erdict") != 1 {
				t.Fatalf("%v, %v: want %q in %q", toCache.changes(), toNone.changes(), want, lines)
			}
			for _, line := range lines {
				if strings.Contains(line, "  ") || strings.Contains(line, "less ,") || strings.Contains(line, "saves ;") {
					t.Fatalf("%v, %v: %q", toCache.changes(), toNone.changes(), line)
				}
			}
		}
	}
}

// The three of a real run that contradicted themselves.
func TestVerdictsThatWereWrong(t *testing.T) {
	slow := Versus{Memory: examples[less], CPU: examples[equal], Time: spread(39.5, 24.8, 78.2)}
	noisy := Versus{Memory: spread(-60, -62, -58), CPU: spread(4, -11, 15), Time: spread(0, -8, 7)}
	few := judged(slow, slow, slow)
	few.Rounds = 3
	for i := range few.Beside {
		v := &few.Beside[i]
		for _, e := range []*measure.Estimate{&v.Memory, &v.CPU, &v.Time} {
			e.Coverage, e.N = 0.75, 3
		}
	}
	for name, c := range map[string]struct {
		s        Summary
		says     []string
		saysNone []string
	}{
		"run time is ignored": {judged(slow, slow, slow),
			[]string{"less pinned memory, more run time", "Verdict: a trade: beside the transport's cache, Pinwheel saves pinned" +
				" memory and costs run time"}, []string{"little cost", "run this job"}},
		"too few rounds, and a firm verdict": {few,
			[]string{"No verdict: 3 rounds can't show a difference; 6 can."}, []string{"Verdict:", "less", "costs"}},
		"no difference is shown, and it does not pay": {judged(noisy, noisy, noisy),
			[]string{"less pinned memory; processor time and run time: not known.",
				"No verdict: whether Pinwheel takes more or less processor time and run time is open."},
			[]string{"Verdict:", "does not pay"}},
	} {
		text := strings.Join(c.s.Verdict(), "\n")
		for _, want := range c.says {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in\n%s", name, want, text)
			}
		}
		for _, none := range c.saysNone {
			if strings.Contains(text, none) {
				t.Errorf("%s: %q in\n%s", name, none, text)
			}
		}
	}
}

// What the transport does by itself, without its cache, is not praised.
func TestSavingOfNoCacheIsNotPinwheels(t *testing.T) {
	gain := example(less, equal, equal)
	s := judged(gain, example(equal, equal, equal), gain)
	s.Managed, s.Passed = 0, 48
	lines := s.Verdict()
	text := strings.Join(lines, "\n")
	if !strings.HasPrefix(lines[len(lines)-1], "Verdict: leave Pinwheel out: no registration went through it") ||
		!strings.HasSuffix(text, "is the doing of no cache. No cache is better than the transport's.") ||
		strings.Contains(text, "Pinwheel takes") {
		t.Error(text)
	}
	var b strings.Builder
	if err := s.WriteText(&b); err != nil || strings.Contains(b.String(), "Pinwheel saved") ||
		!strings.Contains(b.String(), "48 registrations as large as messages, of 48, went past Pinwheel") {
		t.Errorf("%v\n%s", err, b.String())
	}
	if s, _ := Summarize(sixRounds(200, 100, 100, 1)); s.Managed != 6*101 {
		t.Errorf("managed: %d", s.Managed)
	}
}

func TestOtherWayMayWin(t *testing.T) {
	gain, loss := example(less, equal, equal), example(more, equal, equal)
	for _, c := range []struct {
		s    Summary
		says string
	}{
		{judged(gain, gain, gain), "Verdict: run this job with Pinwheel."},
		{judged(gain, loss, gain), "Verdict: leave Pinwheel out: no cache takes less pinned memory, and no more of the rest." +
			" No cache is better than the transport's."},
		{judged(loss, loss, loss), "Verdict: leave Pinwheel out: the transport's cache takes less pinned memory and no cache takes" +
			" less pinned memory, and no more of the rest. The transport's cache is better than none."},
		{judged(gain, example(equal, equal, equal), gain), "Verdict: leave Pinwheel out: no cache takes no more. No cache is" +
			" better than the transport's."},
		{judged(example(equal, equal, equal), example(more, less, less), example(less, more, more)),
			"Verdict: leave Pinwheel out: the transport's cache takes no more. Without its cache, the transport saves pinned memory" +
				" and takes more processor time and run time."},
		{judged(gain, example(more, less, equal), gain), "Verdict: a trade: beside the transport's cache, Pinwheel saves pinned" +
			" memory; beside no cache, Pinwheel saves processor time and costs pinned memory."},
	} {
		lines := c.s.Verdict()
		if got := lines[len(lines)-1]; got != c.says {
			t.Errorf("%q, want %q", got, c.says)
		}
	}
}

func TestTextOfAnyNumberOfRounds(t *testing.T) {
	for rounds := 1; rounds <= 6; rounds++ {
		for _, pinned := range []float64{0, 200} {
			s, ok := Summarize(sixRounds(pinned, pinned/2, pinned*0.55, 1.05)[:3*rounds])
			var b strings.Builder
			if err := s.WriteText(&b); err != nil || !ok || strings.Contains(b.String(), "NaN") || strings.Contains(b.String(), "%!") {
				t.Errorf("%v\n%s", err, b.String())
			}
			for line := range strings.Lines(b.String()) {
				if !strings.HasPrefix(line, "Verdict: ") && len(line) > 121 {
					t.Errorf("a long line: %s", line)
				}
			}
			few := fmt.Sprintf("No verdict: %s can't show a difference; 6 can.", count(rounds, "round"))
			if got := strings.Contains(b.String(), few); got != (rounds < 6 && pinned > 0) {
				t.Errorf("%d rounds:\n%s", rounds, b.String())
			}
			if nothing := strings.Contains(b.String(), "No verdict: there is nothing to compare."); nothing != (pinned == 0) {
				t.Errorf("%d rounds of %v:\n%s", rounds, pinned, b.String())
			}
		}
	}
}

func TestBeatenIsWhoeverTakesMoreAndNothingLess(t *testing.T) {
	for _, c := range []struct {
		toCache, toNone Versus
		want            string
	}{
		{example(less, more, equal), example(more, unknown, equal),
			"\nbeaten by       no cache, which takes less pinned memory; processor time: not known\n"},
		{example(equal, more, more), example(more, more, equal),
			"\nbeaten by       the transport's cache, which takes less processor time and run time\n" +
				"beaten by       no cache, which takes less pinned memory and processor time\n"},
		{example(less, equal, equal), example(more, less, equal), ""},
		{example(equal, equal, equal), example(unknown, unknown, unknown), ""},
	} {
		s := judged(c.toCache, c.toNone, example(less, more, equal))
		var b strings.Builder
		if err := s.WriteText(&b); err != nil {
			t.Fatal(err)
		}
		if got := b.String(); !strings.Contains(got, c.want) || strings.Contains(got, "beaten by") != (c.want != "") {
			t.Errorf("no %q in\n%s", c.want, got)
		}
		if s.Managed = 0; len(s.BeatenBy()) > 0 {
			t.Error("what manages nothing was beaten")
		}
	}
}
