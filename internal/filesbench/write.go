package filesbench

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// Claim is what one way is to gain over another.
type Claim struct {
	What  string  `json:"what"`
	Least float64 `json:"least"` // how many times
	Times float64 `json:"times"` // as measured, by the medians; 0 if one of the two is missing
}

// Holds tells whether the claim does. One that could not be measured holds.
func (c *Claim) Holds() bool { return c.Times == 0 || c.Times >= c.Least }

// Claims judges results of Run.
func Claims(all []Result) []Claim {
	times := func(what, other, ours string) float64 {
		a, b := find(all, what, other), find(all, what, ours)
		if a.Wall.Median == 0 || b.Wall.Median == 0 {
			return 0
		}
		return a.Wall.Median / b.Wall.Median
	}
	return []Claim{
		{"a file by TCP with sendfile as fast as by nginx", 0.95, times(File, nginx, oursSendfile)},
		{"a tree by TLS as fast as by rsync", 1, times(Tree, rsync, oursTLS)},
		{"a file by shared memory faster than by TCP", 2, times(File, oursTLS, oursShared)},
	}
}

func find(all []Result, what, way string) Result {
	if at := slices.IndexFunc(all, func(r Result) bool { return r.What == what && r.Way == way }); at >= 0 {
		return all[at]
	}
	return Result{}
}

// WriteJSON writes results and claims as one JSON object.
func WriteJSON(w io.Writer, all []Result) error {
	return json.NewEncoder(w).Encode(struct {
		Results []Result `json:"results"`
		Claims  []Claim  `json:"claims"`
	}{all, Claims(all)})
}

// WriteTables writes results as tables, processor time first, and which claims hold. Each way is compared with the
// sendfile(2) or the rsync of its table.
func WriteTables(w io.Writer, all []Result) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, table := range []struct{ what, title, beside string }{
		{File, "one file", plain}, {Tree, "many small files", rsync},
	} {
		beside := find(all, table.what, table.beside)
		fmt.Fprintf(t, "%s\tCPU s\tfrom to\tof %s\ttime s\tfrom to\tof %s\tMB/s\n", table.title, table.beside, table.beside)
		for _, r := range all {
			switch {
			case r.What != table.what:
			case r.Missing != "":
				fmt.Fprintf(t, "%s\t%s\n", r.Way, r.Missing)
			default:
				fmt.Fprintf(t, "%s\t%s\t%s\t%.0f\n", r.Way, r.CPU.cells(beside.CPU), r.Wall.cells(beside.Wall),
					float64(r.Bytes)/1e6/r.Wall.Median)
			}
		}
		fmt.Fprintln(t)
	}
	fmt.Fprint(t, "claim\ttimes\tat least\t\n")
	for _, c := range Claims(all) {
		switch {
		case c.Times == 0:
			fmt.Fprintf(t, "%s\t-\t%.2f\tnot measured\n", c.What, c.Least)
		case c.Holds():
			fmt.Fprintf(t, "%s\t%.2f\t%.2f\tholds\n", c.What, c.Times, c.Least)
		default:
			fmt.Fprintf(t, "%s\t%.2f\t%.2f\tdoes not hold\n", c.What, c.Times, c.Least)
		}
	}
	return t.Flush()
}

// cells are the median, the extremes, and the median as a share of another one.
func (s Spread) cells(other Spread) string {
	share := "-"
	if other.Median > 0 {
		share = fmt.Sprintf("%.2f", s.Median/other.Median)
	}
	return fmt.Sprintf("%.3f\t%.3f %.3f\t%s", s.Median, s.Least, s.Most, share)
}
