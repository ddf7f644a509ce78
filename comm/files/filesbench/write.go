package filesbench

import (
	"cmp"
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
	Times float64 `json:"times"` // as measured, by the medians; 0 if it was not
	// Missing says why it was not measured; empty if it was.
	Missing string `json:"missing,omitempty"`
}

// Holds tells whether the claim was measured, and does.
func (c *Claim) Holds() bool { return c.Missing == "" && c.Times >= c.Least }

// Claims judges results of Run. All are about bytes that are not encrypted: what TLS costs stands in the tables, beside
// nginx with TLS.
func Claims(all []Result) []Claim {
	claim := func(about string, least float64, what, other, ours string) Claim {
		c := Claim{What: about, Least: least}
		a, b := find(all, what, other), find(all, what, ours)
		if c.Missing = cmp.Or(a.Missing, b.Missing); c.Missing == "" {
			c.Times = a.Wall.Median / b.Wall.Median
		}
		return c
	}
	return []Claim{
		claim("a file by TCP with sendfile as fast as by nginx", 0.95, File, nginx, oursSendfile),
		claim("a tree by TCP with sendfile as fast as by rsync", 1, Tree, rsync, oursSendfile),
		claim("a file by shared memory faster than by TCP with sendfile", 2, File, oursSendfile, oursShared),
	}
}

func find(all []Result, what, way string) Result {
	if at := slices.IndexFunc(all, func(r Result) bool { return r.What == what && r.Way == way }); at >= 0 {
		return all[at]
	}
	return Result{Missing: "there is no result"}
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
		case c.Missing != "":
			fmt.Fprintf(t, "%s\t-\t%.2f\tnot measured: %s\n", c.What, c.Least, c.Missing)
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
