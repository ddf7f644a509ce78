package main

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"pinwheel/internal/measure"
	"pinwheel/internal/outfile"
	"pinwheel/internal/tools/compare"
	"pinwheel/mem"
)

type paperCmd struct {
	Runs string `default:"results/papers/live.jsonl" help:"What was measured, a line for each run."`
	Into string `default:"results/papers/live.md" help:"The page."`
}

// Run implements the command paper.
func (c *paperCmd) Run() error {
	var s state
	if err := s.Read(c.Runs); err != nil {
		return err
	}
	if err := s.Head.Publishable(); err != nil {
		return err
	}
	return outfile.WriteText(c.Into, s.paper())
}

var says = regexp.MustCompile(`(?m)^(?:latency|overlap): (\d+) ns$`)

// messageNs is what a program says that a message took, 0 if it does not.
func messageNs(output string) float64 {
	m := says.FindStringSubmatch(output)
	if m == nil {
		return 0
	}
	ns, _ := strconv.ParseFloat(m[1], 64) // digits
	return ns
}

const paperHead = `# The papers' microbenchmarks, live

Made by "live paper" from live.jsonl; do not edit. *Reused* and *fresh* are Figure 1 of Li et al. (CF
2011): rank 0 sends three buffers to rank 1, and both sleep for 50 ms after each message; of fresh
buffers none is used in two of ten rounds. *Latency* exchanges a buffer without a pause. Both ranks
run on processor 0 and helpers on processor 1, on the software RDMA device. A helper that polls, as
that of policy paper, keeps processor 1 awake, on which the device's threads run, too. Copied: the
transport copies through buffers of its own. There is no transport here that registers chunk by chunk.
A use that Pinwheel has not foreseen registers its buffer itself, and wakes a thread of the helper
library afterwards. That counts in what such a use may cost.

A message is what it takes its sender, the median of a run: what only the first messages wait for, as
the watch of mappings, is not in it. Peak is VmPin and VmLck of both ranks, with what the transport
pins for itself. Medians over the rounds, and changes against the transport's cache in the same
round, with the 95 % interval of the median by ranks in brackets (of fewer than six rounds: least and
greatest).

In the paper, messages of 17 KB take 14.02 % more with its helper, of 1 MB 4.58 % and of 4 MB 1.22 %
(4.3; there the helper was off and the rest of the path on, as under policy leave-pinned here). With reused buffers its peak is 24.75 %
below the cache's, and with fresh ones the cache's is 4.62 times as high (6.1, 4 MB).

`

const paperTable = `| messages | registrations are kept by | rounds | message | against the cache | bandwidth | peak | cache's peak to this |
|---|---|---:|---:|---:|---:|---:|---:|
`

// sample is what a way takes in one round.
type sample struct{ messageNs, peakBytes float64 }

// way is one that messages are sent in: a mode, or copying.
type way struct {
	mode   compare.Mode
	bounce bool
}

func (w way) String() string {
	if w.bounce {
		return "nobody: copied"
	}
	return w.mode.String()
}

const bounceSuffix = ".bounce"

// messages are what messages took, of all rows whose programs say it.
type messages struct {
	rounds map[cell]map[int]sample
	rows   []string
	ways   []way
	loads  []float64
	failed []string
}

type cell struct {
	row string
	way way
}

func (s *state) messages() messages {
	m := messages{rounds: map[cell]map[int]sample{}}
	for _, l := range s.Lines {
		switch {
		case l.Run == nil:
			continue
		case l.Failed != "":
			if !s.has(l.key, l.Mode, l.Round) {
				m.failed = append(m.failed, fmt.Sprintf("- %s, round %d, %s: %s\n", l.Row, l.Round+1, l.Mode, l.Failed))
			}
			continue
		case l.MessageNs == 0:
			continue
		}
		row, bounce := strings.CutSuffix(l.Row, bounceSuffix)
		c := cell{row, way{l.Mode, bounce}}
		if !slices.Contains(m.rows, row) {
			m.rows = append(m.rows, row)
		}
		if !slices.Contains(m.ways, c.way) {
			m.ways = append(m.ways, c.way)
		}
		if m.rounds[c] == nil {
			m.rounds[c] = map[int]sample{}
		}
		m.rounds[c][l.Round] = sample{l.MessageNs, l.PeakBytes}
		m.loads = append(m.loads, l.Load)
	}
	slices.SortStableFunc(m.ways, func(a, b way) int { return a.order() - b.order() })
	return m
}

// beside returns how many times as long as with the cache messages take in a way, and how many times as high the
// cache's peak is, of each round that has both.
func (m *messages) beside(row string, w way) (slower, lower []float64) {
	cache := m.rounds[cell{row, way{compare.Cache, false}}]
	for round, got := range m.rounds[cell{row, w}] {
		if c, there := cache[round]; there && got.peakBytes > 0 {
			slower, lower = append(slower, got.messageNs/c.messageNs), append(lower, c.peakBytes/got.peakBytes)
		}
	}
	return slower, lower
}

// paper returns the page of them.
func (s *state) paper() string {
	m := s.messages()
	var b strings.Builder
	b.WriteString(paperHead + s.Head.Describe(m.loads) + "\n" + paperTable)
	for _, row := range m.rows {
		for _, w := range m.ways {
			if len(m.rounds[cell{row, w}]) > 0 {
				fmt.Fprintf(&b, "| %s | %s | %s |\n", strings.TrimPrefix(row, ucx+"/"), w, strings.Join(m.cells(row, w), " | "))
			}
		}
	}
	if len(m.failed) > 0 {
		b.WriteString("\nRuns that failed and count for nothing:\n\n" + strings.Join(m.failed, ""))
	}
	return b.String()
}

// order is that of the table.
func (w way) order() int {
	if w.bounce {
		return -1
	}
	return slices.Index(paperModes, w.mode)
}

// cells are those of one way, compared with the cache.
func (m *messages) cells(row string, w way) []string {
	var ns, peaks []float64
	for _, got := range m.rounds[cell{row, w}] {
		ns, peaks = append(ns, got.messageNs), append(peaks, got.peakBytes)
	}
	slower, lower := m.beside(row, w)
	message, change, times := measure.Estimated(ns), "", ""
	if len(slower) > 0 && w != (way{compare.Cache, false}) {
		change, times = measure.Estimated(slower).Percent(), measure.Estimated(lower).Text("%.2f")
	}
	return []string{fmt.Sprint(len(ns)), fmt.Sprintf("%.1f us", message.Median/1e3), change,
		bandwidth(row, message.Median), mib(measure.Estimated(peaks)) + " MiB", times}
}

// bandwidth is that of messages of a row's size, each of which takes so long.
func bandwidth(row string, ns float64) string {
	for part := range strings.SplitSeq(row, ".") {
		if bytes, err := mem.ParseBytes(part); err == nil && bytes >= 1<<10 {
			return fmt.Sprintf("%.0f MB/s", float64(bytes)/ns*1e3)
		}
	}
	return ""
}
