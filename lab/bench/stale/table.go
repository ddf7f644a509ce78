package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

type tableCmd struct {
	Files []string `arg:"" help:"Output of matrix, race and cost."`
}

// line is any line of any result file.
type line struct {
	Race
	Cost   string    `json:"cost"`
	Median float64   `json:"median"`
	Low    float64   `json:"low"`
	High   float64   `json:"high"`
	Unit   string    `json:"unit"`
	Runs   []float64 `json:"runs"`
}

// who is the mechanism, and the user if that is not root.
func (l *line) who() string {
	if l.User != "root" {
		return l.Mechanism + ", " + l.User
	}
	return l.Mechanism
}

// Run prints the page of result files, which results/stale/README.md is.
func (c tableCmd) Run() error {
	all, err := readLines(c.Files)
	if err != nil {
		return err
	}
	var cells, races, costs []line
	for _, l := range all {
		switch {
		case l.Cost != "":
			costs = append(costs, l)
		case l.Change == "race":
			races = append(races, l)
		default:
			cells = append(cells, l)
		}
	}
	w := bufio.NewWriter(os.Stdout)
	fmt.Fprint(w, preface)
	writeMatrix(w, cells)
	writeRaces(w, races)
	writeCosts(w, costs)
	return w.Flush()
}

// readLines reads result files.
func readLines(files []string) (all []line, err error) {
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close() // only read from
		for lines := bufio.NewScanner(f); lines.Scan(); {
			var l line
			if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			all = append(all, l)
		}
	}
	return all, nil
}

const preface = `# Never stale

` + "`make results-stale`" + ` writes this page. The harness registers a range through the cache, changes
its mapping, acquires it again, and sends 64 KiB through the registration in both directions. Only
the bytes decide:

- **detected**: the cache registered the range anew, and the right bytes moved.
- **kept**: the cache returned a hit, and the right bytes moved. Either the change leaves pinned
  pages where they are, or it changed nothing.
- **not cached**: the cache registers this memory for each operation, because it can't see changes.
- **STALE**: the other side got old data, or the program did not see what arrived.
- **HANGS**: the program waits for ever.
- n/a: the change is not possible there. A note below gives the reason.

In brackets is the device that moved the bytes: io_uring, an RDMA device (rdma), or the software
RDMA device of lab/testbed/softverbs. *unwatched* is our cache without notification. *ucx* is the cache
of UCX 1.13.1 (Debian) in the same harness. (UCX replaces mremap by a function of four arguments. So
MREMAP_FIXED loses its target address in every program that links UCX.) *libfabric*
(results/stale/libfabric) is the cache of libfabric 1.17.0 (Debian), provider verbs;ofi_rxm, under
the memory monitors that it has and under that of libpinwheel-watch: *pinwheel* takes the best
mechanism that there is, *pinwheel uffd* that one.
`

// column is one configuration of the matrix.
func (l line) column() string {
	return fmt.Sprintf("%s (%s, Linux %s)", l.who(), l.Device, shortKernel(l.Kernel))
}

func shortKernel(release string) string {
	parts := strings.SplitN(release, ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
}

func machines(lines []line) string {
	seen := map[string]bool{}
	for _, l := range lines {
		seen[fmt.Sprintf("Pinwheel %s: %s, Linux %s, %s", cmp.Or(l.Version, "before versions were kept"), l.Machine, l.Kernel, l.Date)] = true
	}
	return strings.Join(slices.Sorted(maps.Keys(seen)), "; ")
}

func writeMatrix(w io.Writer, cells []line) {
	if len(cells) == 0 {
		return
	}
	var rows, columns []string
	verdicts := map[[2]string]line{}
	stales := map[string]int{}
	for _, l := range cells {
		c := l.column()
		if !slices.Contains(rows, l.Change) {
			rows = append(rows, l.Change)
		}
		if !slices.Contains(columns, c) {
			columns = append(columns, c)
		}
		verdicts[[2]string{l.Change, c}] = l
		if l.Verdict == stale {
			stales[c]++
		}
	}
	fmt.Fprintf(w, "\n## Mechanism and kind of change\n\n%s.\n\n", machines(cells))
	fmt.Fprintf(w, "| change | %s |\n|---%s|\n", strings.Join(columns, " | "), strings.Repeat("|---", len(columns)))
	var notes []string
	for _, row := range rows {
		fmt.Fprintf(w, "| %s", row)
		for _, c := range columns {
			l, ok := verdicts[[2]string{row, c}]
			switch {
			case !ok:
				fmt.Fprint(w, " | ")
			case l.Verdict == stale || l.Verdict == hangs:
				fmt.Fprintf(w, " | **%s**", l.Verdict)
			case l.Why != "":
				why, _, _ := strings.Cut(l.Why, "\n")
				notes = append(notes, fmt.Sprintf("%s, %s: %s", c, row, why))
				fmt.Fprintf(w, " | n/a [%d]", len(notes))
			default:
				fmt.Fprintf(w, " | %s", l.Verdict)
			}
		}
		fmt.Fprintln(w, " |")
	}
	fmt.Fprint(w, "| **stale cells**")
	for _, c := range columns {
		fmt.Fprintf(w, " | **%d**", stales[c])
	}
	fmt.Fprintln(w, " |")
	for i, n := range notes {
		fmt.Fprintf(w, "\n[%d] %s\n", i+1, n)
	}
}

func writeRaces(w io.Writer, races []line) {
	if len(races) == 0 {
		return
	}
	fmt.Fprintf(w, `
## Races

%s.

Threads free a range, in turn by munmap, by mremap to another address, and by both for its end. As
many other threads take the address as soon as the kernel lets them, and send fresh bytes from it
three times per change. *helper*: one more thread deregisters and registers the same regions at the
same time. *early*: the address was in use again before the call that freed it had returned.

| mechanism | user | kernel | threads | helper | changes | early | hits | registrations | by the helper | stale |
|---|---|---|---|---|---|---|---|---|---|---|
`, machines(races))
	for _, l := range races {
		helper := ""
		if l.Helper {
			helper = "yes"
		}
		fmt.Fprintf(w, "| %s | %s | %s | %d + %d | %s | %d | %d | %d | %d | %d | **%d** |\n", l.Mechanism, l.User,
			shortKernel(l.Kernel), l.Threads, l.Threads,
			helper, l.Race.Changes, l.TakenEarly, l.Hits, l.Registrations, l.Reregistered, l.Stale)
	}
}

func writeCosts(w io.Writer, costs []line) {
	if len(costs) == 0 {
		return
	}
	var rows, columns []string
	cells := map[[2]string]line{}
	for _, l := range costs {
		c := l.who()
		if !slices.Contains(rows, l.Cost) {
			rows = append(rows, l.Cost)
		}
		if !slices.Contains(columns, c) {
			columns = append(columns, c)
		}
		cells[[2]string{l.Cost, c}] = l
	}
	fmt.Fprintf(w, "\n## Costs\n\n%s.\n\nThe figures are medians of several runs, with the lowest and the highest in "+
		"brackets. UCX's hit\n"+
		"includes the call from Go.\n\n| | %s |\n|---%s|\n", machines(costs),
		strings.Join(columns, " | "), strings.Repeat("|---", len(columns)))
	for _, row := range rows {
		fmt.Fprintf(w, "| %s", row)
		for _, c := range columns {
			if l, ok := cells[[2]string{row, c}]; ok {
				fmt.Fprintf(w, " | %s [%s, %s] %s", short(l.Median), short(l.Low), short(l.High), l.Unit)
			} else {
				fmt.Fprint(w, " | ")
			}
		}
		fmt.Fprintln(w, " |")
	}
}

// short formats three significant digits.
func short(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}
