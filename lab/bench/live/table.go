package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"pinwheel/internal/markers"
	"pinwheel/internal/measure"
	"pinwheel/internal/settings"
	"pinwheel/internal/tools/compare"
	"pinwheel/lab/kit"
)

var tables = markers.Markers{Begin: "<!-- begin: make bench-live -->\n", End: "<!-- end: make bench-live -->\n"}

// Run implements the command table.
func (c *tableCmd) Run() error {
	var s state
	if err := s.Read(c.Runs); err != nil {
		return err
	}
	if err := s.Head.Publishable(); err != nil {
		return err
	}
	if err := tables.Into(c.Into, s.markdown()); err != nil || c.Readme == "" {
		return err
	}
	return headlineMarkers.Into(c.Readme, s.headline())
}

// measured is a row with its measures.
type measured struct {
	key
	runs    []compare.Run
	loads   []float64
	summary compare.Summary
	whole   bool // there is a summary
	replay  *replayed
}

// measured returns the rows that were measured, in the order of their first runs.
func (s *state) measured() (rows []measured) {
	for _, k := range s.keys() {
		m := measured{key: k}
		m.runs, m.loads, m.replay = s.of(k)
		m.summary, m.whole = compare.Summarize(m.runs)
		rows = append(rows, m)
	}
	return rows
}

// markdown returns the tables of all rows.
func (s *state) markdown() string {
	all := s.measured()
	var failed []string
	var loads []float64
	for _, m := range all {
		loads = append(loads, m.loads...)
		for _, r := range m.runs {
			if r.Failed != "" {
				failed = append(failed, fmt.Sprintf("- %s, round %d, %s: %s", m.Row, r.Round+1, r.Mode, r.Failed))
			}
		}
		if m.replay != nil && m.replay.Failed != "" {
			failed = append(failed, fmt.Sprintf("- %s, the replay of its record: %s", m.Row, m.replay.Failed))
		}
	}
	rows := slices.DeleteFunc(all, func(m measured) bool { return !m.whole })
	var b strings.Builder
	b.WriteString("\n" + s.Head.Describe(loads) + intervals)
	modeTable(&b, rows)
	ownTable(&b, rows)
	if len(failed) > 0 {
		b.WriteString("\nRuns that failed and count for nothing:\n\n" + strings.Join(failed, "\n") + "\n")
	}
	if left := s.leftOut(); len(left.whys) > 0 {
		b.WriteString("\nLeft out:\n\n")
		for _, line := range left.lines() {
			b.WriteString(kit.Wrap("- " + line))
		}
	}
	return b.String() + "\n"
}

// worthwhile is the share of the cache's memory below which captured_live says little.
const worthwhile = 0.20

// The goals.
const (
	goalCaptured    = 0.9   // of the replay's captured_avg, with an idle processor
	goalIdleTime    = 1.005 // run time beside the cache's, with an idle processor
	goalNothingTime = 1.002 // the same, with nothing to save
)

const intervals = `
Figures are medians over the rounds, with the 95 % interval of the median by ranks in brackets (of
fewer than six rounds: least and greatest). All ranks of a job count together.

`

const modeHead = `### What each way takes

Rows that end in slow have the device whose registrations cost what UCX assumes of an adapter.
Pinned is VmPin and VmLck in MiB, the mean from MPI_Init's return to MPI_Finalize, as are processor
time (all threads) and run time. These are absolute for the transport's cache, and changes against
it in the same round for the rest. Captured is (cache - this) / (cache - none) of pinned memory; it
says little where none saves less than 20 % of the cache's memory, and is left out there.

Late is a share of the uses after the first: of those that registered memory again, or waited for a
registration under way. Cost is Pinwheel's own count of what it cost, compared with a cache that
keeps everything, as a share of the run time, and of how much PINWHEEL_COST allows. Watch is how
changes of mappings were noticed: tps and fentry are BPF. Pinwheel is beaten by what takes less
memory, processor time or run time than it and, as far as that is known, no more of the rest; that
is the rule of "pinwheel run --compare".

Goals, and bold where they are missed: with an idle processor, Pinwheel's run time is at most .5 %
above the cache's, and what it captures at least .9 of what the replay of its record does; where
there is nothing to save, its run time is at most .2 % above.

| job | user | registrations are kept by | rounds | pinned | captured | processor time | run time | late | cost | watch | beaten by |
|---|---|---|---:|---:|---:|---:|---:|---:|---:|---|---|
`

func modeTable(b *strings.Builder, rows []measured) {
	b.WriteString(modeHead)
	for _, r := range rows {
		for _, t := range r.summary.Modes {
			fmt.Fprintf(b, "| %s |\n", strings.Join(r.cells(t), " | "))
		}
	}
	b.WriteString("\n")
}

// cells are those of a mode in the first table.
func (r measured) cells(t compare.Totals) []string {
	cpu, run := compare.Seconds(t.CPUNs.Median), fmt.Sprintf("%.2f s", t.Seconds.Median)
	captured, late, cost, beaten := "", "", "", ""
	if t.Mode != compare.Cache {
		v := r.summary.Versus(t.Mode, compare.Cache)
		cpu, run = v.CPU.Percent(), bold(v.Time.Percent(), t.Mode == compare.Pinwheel && v.Time.Median > r.goalTime())
		if r.summary.Savable >= worthwhile {
			captured = bold(t.CapturedLive.Text("%.2f"), t.Mode == compare.Pinwheel && t.CapturedLive.Median < r.goalCaptured())
		}
	}
	if t.Cost != nil {
		late, cost = fmt.Sprintf("%.2f %%", 100*t.Late), spent(t)
	}
	if t.Mode == compare.Pinwheel {
		beaten = beatenBy(r.summary)
	}
	return []string{r.Row, r.User, t.Mode.String(), fmt.Sprint(t.Rounds), mib(t.AvgPinnedBytes), captured, cpu, run,
		late, cost, strings.Join(t.Watches, ", "), beaten}
}

// spent says how much was spent of how much was allowed.
func spent(t compare.Totals) string {
	text := fmt.Sprintf("%.2f %%", 100*t.Cost.Median)
	if t.CostAllowed > 0 {
		text += " of " + settings.FormatShare(t.CostAllowed)
	}
	return text
}

func bold(text string, is bool) string {
	if is {
		return "**" + text + "**"
	}
	return text
}

func (r measured) idle() bool { return strings.Contains(r.Row, ".idle") }

// goalTime is the ratio that Pinwheel's run time may have to the cache's; there is none where all processors are busy.
func (r measured) goalTime() float64 {
	switch {
	case r.summary.Savable < worthReplaying:
		return goalNothingTime
	case r.idle():
		return goalIdleTime
	}
	return math.Inf(1)
}

func (r measured) goalCaptured() float64 {
	if r.idle() && r.replay != nil && r.replay.CapturedAvg != nil {
		return goalCaptured * *r.replay.CapturedAvg
	}
	return math.Inf(-1)
}

// beatenBy names what has beaten Pinwheel.
func beatenBy(s compare.Summary) string {
	var names []string
	for _, m := range s.BeatenBy() {
		names = append(names, m.String())
	}
	return strings.Join(names, ", ")
}

const ownHead = `### What Pinwheel adds, and what its replay foretells

"Beyond" is the change of processor time without the time of Pinwheel's own registrations. "Counted"
is what Pinwheel counts itself that it adds: its threads without the registrations and the opening,
and the path of each use. Start and end are what a rank takes more with Pinwheel; the end includes
writing its report. The opening is the part of the start that waits for the rank's first large
message: the watch of mappings and the helper.

The replay is that of the job's own record, on its recorded timeline, with the costs of the device
for a program that computes between its exchanges, while the other processors that the job had are
busy writing memory.

| job | user | beyond our registrations | registrations | counted | start | opening | end | captured in the replay | late in the replay |
|---|---|---:|---:|---:|---:|---:|---:|---:|---:|
`

func ownTable(b *strings.Builder, rows []measured) {
	b.WriteString(ownHead)
	for _, r := range rows {
		s := r.summary
		beyond, counted, opening, captured, late := "", "", "", "", ""
		if s.Beyond != nil {
			beyond, counted = s.Beyond.Percent(), fmt.Sprintf("%.2f %%", 100*s.Added.Median)
			opening = compare.Seconds(s.OpeningNs.Median)
		}
		if r.replay != nil && r.replay.CapturedAvg != nil {
			captured, late = fmt.Sprintf("%.2f", *r.replay.CapturedAvg), fmt.Sprintf("%.2f %%", 100*r.replay.Late)
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", r.Row, r.User,
			beyond, compare.Seconds(s.Of(compare.Pinwheel).RegisterNs.Median), counted, compare.Seconds(s.StartNs.Median),
			opening, compare.Seconds(s.EndNs.Median), captured, late)
	}
}

func mib(e measure.Estimate) string { return fmt.Sprintf("%.0f", e.Median/(1<<20)) }
