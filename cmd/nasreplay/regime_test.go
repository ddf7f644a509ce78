package main

import (
	"strings"
	"testing"
	"time"

	"pinwheel/lab/replay"
	"pinwheel/lab/replay/replaytest"
	"pinwheel/trace"
)

// A helper gets what it would get live where the trace was recorded, unless a flag says what.
func TestHelpersGetWhatTheMachineOfTheTraceHad(t *testing.T) {
	here := func(places ...string) *trace.File {
		var script strings.Builder
		for i, p := range places {
			script.WriteString(string(rune('0'+i)) + ": " + p + "; barrier\n")
		}
		return replaytest.Trace(t, script.String())
	}
	cores := 1
	opening := 7 * time.Millisecond
	for _, c := range []struct {
		f     *trace.File
		flags model
		share float64 // 0: no limit
		says  string
	}{
		{here("", ""), model{}, 0, "does not say"},
		{here("place 4 2 0s", "place 4 2 0s"), model{}, 0, "2 ranks had 4 processors"},
		{here("place 2 2 0s", "place 2 2 0s"), model{}, .005, "2 ranks had 2 processors"},
		{here("place 8 1 0s", "place 3 2 0s"), model{}, .005, "2 ranks had 3 processors"}, // the fullest node
		{here("place 2 2 0s"), model{HelperShare: 1}, 1, "on cores of their own"},
		{here("place 8 2 0s"), model{HelperShare: .1}, .1, "for at most 10%"},
		{here("place 2 2 0s"), model{Workers: 4}, 0, "on cores of their own"},
		{here("place 2 2 0s"), model{IdleCores: &cores}, 0, "share 1 idle cores"},
		{here("place 2 2 3ms", "place 2 2 5ms"), model{}, .005, "in the first 5.00 ms"},
		{here("place 2 2 3ms"), model{Opening: &opening}, .005, "in the first 7.00 ms"},
	} {
		o := replay.Options{HelperShare: float64(c.flags.HelperShare)}
		text, err := c.flags.regime(&o, c.f)
		if err != nil || o.HelperShare != c.share || !strings.Contains(text, c.says) {
			t.Errorf("share %g, %q, %v; want %g, %q", o.HelperShare, text, err, c.share, c.says)
		}
		if (o.WatchNs > 0) != strings.Contains(text, "in the first") {
			t.Errorf("%d ns, %q", o.WatchNs, text)
		}
	}
}

// The traces of the README do not say what their machine had: their figures stay what they are.
func TestExplainSaysWhatItSimulatesAndWhatTheTraceCannotKnow(t *testing.T) {
	out, errs, status := nasreplay(t, "explain", isC4)
	for _, want := range []string{"helpers: on cores of their own; the trace does not say", "not in the trace: ends of buffers, and",
		"Compared with a cache, Pinwheel cost 0."} {
		if status != 0 || strings.Count(out, want) != 1 {
			t.Errorf("status %d, %s: no %q in\n%s", status, errs, want, out)
		}
	}
	out, errs, status = nasreplay(t, "compare", "--policy", "pinwheel", "--helper-share", "5%", isC4)
	if status != 0 || !strings.Contains(out, "helpers: none: uses on demand, for at most 5% of the time of their rank\n") {
		t.Errorf("status %d, %s\n%s", status, errs, out)
	}
}
