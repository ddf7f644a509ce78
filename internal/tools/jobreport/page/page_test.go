package page

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"pinwheel/internal/report"
)

// job returns reports of n ranks that pin a sawtooth, the odd ones of which were parked in the end.
func job(n int) (ranks []report.Rank) {
	for i := range n {
		r := report.Rank{
			Rank: i, Size: n, PID: 1 + i, Host: fmt.Sprintf("node%d", i/32), Command: "/opt/app <b>&", Policy: "pinwheel",
			Helper:  "on an idle core (auto)",
			Seconds: 10, Uses: 100, Hits: 90, First: 4, Late: 6, HelperDeregs: 80, StallNs: uint64(i) * 1e6, VerbsUsed: true,
			Sites:   []report.Site{{Name: "halo+0x1 < main+0x2", Op: "isend", Uses: 100, Bytes: 1 << 30, Late: 6, StallNs: 1e6}},
			History: &report.History{},
		}
		for k := range 1000 {
			r.History.Pinned.Values = append(r.History.Pinned.Values, float64(k%50)*1e6)
			r.History.Parked.Values = append(r.History.Parked.Values, float64(i%2*(k/900)))
			r.History.Late.Values = append(r.History.Late.Values, float64(k%100/99))
			r.History.Stalled.Values = append(r.History.Stalled.Values, 0.01)
		}
		h := r.History
		h.Pinned.WidthNs, h.Parked.WidthNs, h.Late.WidthNs, h.Stalled.WidthNs = 1e7, 1e7, 1e7, 1e7
		ranks = append(ranks, r)
	}
	return ranks
}

func write(t *testing.T, ranks ...report.Rank) string {
	t.Helper()
	var p Page
	for _, r := range ranks {
		p.Add(r)
	}
	var b strings.Builder
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestPageNeedsNothingFromElsewhere(t *testing.T) {
	elsewhere := regexp.MustCompile(`(?i)<script|<link|@import|url\(|(href|src)="[^d]|https?://[^"]*`)
	for _, n := range []int{1, 2, 8, 9, 512} {
		got := write(t, job(n)...)
		for _, found := range elsewhere.FindAllString(got, -1) {
			if found != "http://www.w3.org/2000/svg" {
				t.Errorf("%d ranks: %s", n, found)
			}
		}
		for _, want := range []string{"<title>app under Pinwheel</title>", fmt.Sprintf("%d of %d ranks", n, n), "isend",
			"Pinned memory of all ranks", "/opt/app &lt;b&gt;&amp;"} {
			if !strings.Contains(got, want) {
				t.Errorf("%d ranks: no %q", n, want)
			}
		}
		for _, bad := range []string{"NaN", "Inf", "<b>&", "ZgotmplZ"} {
			if strings.Contains(got, bad) {
				t.Errorf("%d ranks: %q", n, bad)
			}
		}
		if len(got) > 1<<20 {
			t.Errorf("%d ranks take %d bytes", n, len(got))
		}
	}
}

func TestPageShowsTheRanksThatWaitedLongest(t *testing.T) {
	got := write(t, job(40)...)
	longest, others, _ := strings.Cut(got, "<details>")
	if !strings.Contains(longest, "<td>39</td>") || strings.Contains(longest, "<td>3</td>") ||
		!strings.Contains(others, "<td>3</td>") || !strings.Contains(others, "The other 24 ranks") {
		t.Error(got)
	}
}

func TestPageOfReportsWithoutHistorySaysSo(t *testing.T) {
	got := write(t, report.Rank{Size: 1, Command: "./x"})
	if !strings.Contains(got, "The reports have no history") ||
		!strings.Contains(got, "Nothing was registered through Pinwheel: the transport used no verbs") {
		t.Error(got)
	}
}

func TestNonsenseOfAReportIsNoPanic(t *testing.T) {
	for name, change := range map[string]func(*report.Rank){
		"negative time":  func(r *report.Rank) { r.Seconds = -1 },
		"endless time":   func(r *report.Rank) { r.Seconds = 1e300 },
		"no time":        func(r *report.Rank) { r.Seconds = 0 },
		"wide intervals": func(r *report.Rank) { r.History.Pinned.WidthNs = math.MaxInt64 },
		"no width":       func(r *report.Rank) { r.History.Pinned.WidthNs = 0 },
		"negative width": func(r *report.Rank) { r.History.Late.WidthNs = -5 },
		"great values":   func(r *report.Rank) { r.History.Pinned.Values[3] = math.MaxFloat64 },
		"small values":   func(r *report.Rank) { r.History.Parked.Values[3] = -math.MaxFloat64 },
		"no values":      func(r *report.Rank) { r.History.Pinned.Values = nil },
		"great stall":    func(r *report.Rank) { r.StallNs = math.MaxUint64 },
	} {
		for _, n := range []int{2, 9} {
			ranks := job(n)
			change(&ranks[0])
			if got := write(t, ranks...); strings.Contains(got, "NaN") || strings.Contains(got, "Inf") {
				t.Errorf("%s, %d ranks: NaN or Inf", name, n)
			}
		}
	}
}

func TestColumnsKeepTheMeanAndTheSum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := report.Series{WidthNs: rapid.Int64Range(1, 1e6).Draw(t, "width")}
		count := rapid.IntRange(1, 300).Draw(t, "values")
		for range count {
			s.Values = append(s.Values, rapid.Float64Range(0, 1e9).Draw(t, "value"))
		}
		ns := s.WidthNs*int64(count-1) + rapid.Int64Range(1, s.WidthNs).Draw(t, "rest")
		var sum, integral, gotSum, gotIntegral float64
		for i, v := range s.Values {
			sum += v
			integral += v * float64(min(s.WidthNs, ns-int64(i)*s.WidthNs))
		}
		for _, v := range totals(s, ns, columns) {
			gotSum += v
		}
		for _, v := range means(s, ns, columns) {
			gotIntegral += v * float64(ns) / columns
		}
		if math.Abs(gotSum-sum) > 1e-6*(sum+1) || math.Abs(gotIntegral-integral) > 1e-6*(integral+1) {
			t.Fatalf("sum %g, want %g; integral %g, want %g", gotSum, sum, gotIntegral, integral)
		}
	})
}

func TestPageSaysWhatPinwheelTakesForItself(t *testing.T) {
	ranks := job(1)
	const says = "Pinwheel itself took "
	if got := write(t, ranks...); strings.Contains(got, says) {
		t.Errorf("nothing was measured: %s", got)
	}
	ranks[0].CPUNs, ranks[0].HelperCPUNs = 1e9, 1e7
	if got := write(t, ranks...); !strings.Contains(got, says) {
		t.Errorf("no %q", says)
	}
}
