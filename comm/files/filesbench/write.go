package filesbench

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"pinwheel/internal/measure"
)

// Claims judges results of Run. All are about bytes that are not encrypted: what TLS costs stands in the tables, beside
// nginx with TLS.
func Claims(all []Result) []measure.Claim {
	claim := func(about string, least float64, what, other, ours string) measure.Claim {
		c := measure.Claim{What: about, Relation: measure.AtLeast, Bound: least}
		a, b := find(all, what, other), find(all, what, ours)
		if c.Missing = cmp.Or(a.Missing, b.Missing); c.Missing == "" {
			c.Times = a.Wall.Median / b.Wall.Median
		}
		return c
	}
	return []measure.Claim{
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
		Results []Result        `json:"results"`
		Claims  []measure.Claim `json:"claims"`
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
				fmt.Fprintf(t, "%s\t%s\t%s\t%.0f\n", r.Way, cells(r.CPU, beside.CPU), cells(r.Wall, beside.Wall),
					float64(r.Bytes)/1e6/r.Wall.Median)
			}
		}
		fmt.Fprintln(t)
	}
	measure.WriteClaims(t, Claims(all))
	return t.Flush()
}

// cells are the median, its interval, and the median as a share of another one.
func cells(e, other measure.Estimate) string {
	share := "-"
	if other.Median > 0 {
		share = fmt.Sprintf("%.2f", e.Median/other.Median)
	}
	return fmt.Sprintf("%.3f\t%.3f %.3f\t%s", e.Median, e.Low, e.High, share)
}
