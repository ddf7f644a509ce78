package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"pinwheel/internal/compare"
	"pinwheel/internal/markers"
	"pinwheel/internal/outfile"
)

var tables = markers.Markers{Begin: "<!-- begin: make bench-live -->\n", End: "<!-- end: make bench-live -->\n"}

// Run implements the command table.
func (c *tableCmd) Run() error {
	var s state
	if err := s.Read(c.Runs); err != nil {
		return err
	}
	doc, err := os.ReadFile(c.Into)
	if err != nil {
		return err
	}
	text, err := tables.Replace(string(doc), s.markdown())
	if err != nil {
		return fmt.Errorf("%s: %w", c.Into, err)
	}
	return outfile.Write(c.Into, func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	})
}

// measured is a row with its measures.
type measured struct {
	name    string
	summary compare.Summary
	replay  *replayed
}

// markdown returns the tables of all rows.
func (s *state) markdown() string {
	var rows []measured
	var failed []string
	var loads []float64
	for _, name := range s.rows() {
		runs, load, replay := s.of(name)
		loads = append(loads, load...)
		if summary, ok := compare.Summarize(runs); ok {
			rows = append(rows, measured{name, summary, replay})
		}
		for _, r := range runs {
			if r.Failed != "" {
				failed = append(failed, fmt.Sprintf("- %s, round %d, %s: %s", name, r.Round+1, r.Mode, r.Failed))
			}
		}
		if replay != nil && replay.Failed != "" {
			failed = append(failed, fmt.Sprintf("- %s, the replay of its record: %s", name, replay.Failed))
		}
	}
	var b strings.Builder
	b.WriteString("\n" + s.Head.Describe(loads) + intervals)
	b.WriteString(memoryTable(rows))
	b.WriteString(costTable(rows))
	if len(failed) > 0 {
		b.WriteString("\nRuns that failed and count for nothing:\n\n" + strings.Join(failed, "\n") + "\n")
	}
	return b.String() + "\n"
}

// worthwhile is the share of the cache's memory below which captured_live says little.
const worthwhile = 0.20

const goalCaptured = 0.9 // of the replay's captured_avg, with an idle processor

const intervals = `
Figures are medians over the rounds, with the 95 % interval of the median by ranks in brackets (of
fewer than six rounds: least and greatest). All ranks of a job count together.

`

const memoryHead = `### Pinned memory

VmPin and VmLck in MiB, the mean from MPI_Init's return to MPI_Finalize. captured_live is (cache -
pinwheel) / (cache - none). It says little where none saves less than 20 % of the cache's memory,
and is left out there. The replay is that of the job's own record, on its recorded timeline, with
the costs of the device for a program that computes between its exchanges, while the other
processors that the job had are busy writing memory. With an idle processor,
captured_live is bold if it is below 0.9 of the replay's captured_avg. Late is a share of the needs
after the first. Pinwheel is beaten by what takes less memory, processor time or run time than it
and, as far as that is known, no more of the rest.

| job | rounds | cache | none | Pinwheel | captured_live | captured_avg of the replay | late | late in the replay | beaten by |
|---|---:|---:|---:|---:|---:|---:|---:|---:|---|
`

const costHead = `### Processor time and run time

Processor time of all threads from MPI_Init's return to MPI_Finalize. Changes are against the
transport's cache, in the same round. "Beyond" leaves out the time of Pinwheel's own
registrations. "Counted" is what Pinwheel counts itself that it adds: its threads without the
registrations and the opening, and the path of each use. Start and end are what a rank takes more
with Pinwheel; the end includes writing its report. The opening is the part of the start that waits
for the rank's first large message: the watch of mappings and the helper.

| job | cache | none | Pinwheel | beyond our registrations | registrations | counted | start | opening | end | run time | change |
|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|
`

func memoryTable(rows []measured) string {
	var b strings.Builder
	b.WriteString(memoryHead)
	for _, r := range rows {
		s := r.summary
		captured, replay, replayLate := "", "", ""
		if s.Savable >= worthwhile {
			captured = s.CapturedLive.Text("%.2f")
		}
		if r.replay != nil && r.replay.CapturedAvg != nil {
			replay, replayLate = fmt.Sprintf("%.2f", *r.replay.CapturedAvg), fmt.Sprintf("%.2f %%", 100*r.replay.Late)
			goal := goalCaptured * *r.replay.CapturedAvg
			if strings.HasSuffix(r.name, ".idle") && captured != "" && s.CapturedLive.Median < goal {
				captured = "**" + captured + "**"
			}
		}
		fmt.Fprintf(&b, "| %s | %d | %s | %s | %s | %s | %s | %.2f %% | %s | %s |\n",
			r.name, s.Rounds, mib(s.Of(compare.Cache).AvgPinnedBytes),
			mib(s.Of(compare.None).AvgPinnedBytes), mib(s.Of(compare.Pinwheel).AvgPinnedBytes),
			captured, replay, 100*s.Late, replayLate, beatenBy(s))
	}
	return b.String() + "\n"
}

// beatenBy names the columns of what has beaten Pinwheel.
func beatenBy(s compare.Summary) string {
	var names []string
	for _, m := range s.BeatenBy() {
		names = append(names, string(m))
	}
	return strings.Join(names, ", ")
}

func costTable(rows []measured) string {
	var b strings.Builder
	b.WriteString(costHead)
	for _, r := range rows {
		s := r.summary
		beyond, counted, opening := "", "", ""
		if s.Beyond != nil {
			beyond, counted = s.Beyond.Percent(), fmt.Sprintf("%.2f %%", 100*s.Added.Median)
			opening = compare.Seconds(s.OpeningNs.Median)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %.2f s | %s |\n",
			r.name, compare.Seconds(s.Of(compare.Cache).CPUNs.Median), s.NoneToCache.CPU.Percent(), s.PinwheelToCache.CPU.Percent(),
			beyond, compare.Seconds(s.Of(compare.Pinwheel).RegisterNs.Median), counted, compare.Seconds(s.StartNs.Median),
			opening, compare.Seconds(s.EndNs.Median), s.Of(compare.Cache).Seconds.Median, s.PinwheelToCache.Time.Percent())
	}
	return b.String()
}

func mib(e compare.Estimate) string { return fmt.Sprintf("%.0f", e.Median/(1<<20)) }
