package vmmcbench

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"pinwheel/internal/measure"
)

// Report is what WriteJSON writes.
type Report struct {
	Results []Result        `json:"results"`
	Claims  []measure.Claim `json:"claims"`
}

// WriteJSON writes results and claims as one JSON object.
func WriteJSON(w io.Writer, all []Result) error {
	return json.NewEncoder(w).Encode(Report{all, Claims(all)})
}

// row is a way of communication with its results.
type row struct {
	by, over string
	of       map[string]Result // by cell
}

// cell names a result in a row.
func cell(kind string, bytes int) string { return fmt.Sprint(kind, bytes) }

// rowsOf collects the results of some kinds.
func rowsOf(all []Result, kinds ...string) (rows []row) {
	at := map[[2]string]int{}
	for _, r := range all {
		for _, k := range kinds {
			if r.Kind != k {
				continue
			}
			key := [2]string{r.By, r.Over}
			n, known := at[key]
			if !known {
				n = len(rows)
				at[key] = n
				rows = append(rows, row{r.By, r.Over, map[string]Result{}})
			}
			rows[n].of[cell(r.Kind, r.Bytes)] = r
		}
	}
	return rows
}

// WriteTables writes results as tables, with "-" for what was not measured, and which claims hold.
func WriteTables(w io.Writer, all []Result) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(t, "messages\tover\tlatency us\tCPU us\t8 B: us\tCPU us\t4 KiB: MB/s\tCPU us\t1 MiB: MB/s\tCPU us\n")
	for _, r := range rowsOf(all, Latency, Bandwidth) {
		fmt.Fprintf(t, "%s\t%s", r.by, r.over)
		r.times(t, cell(Latency, 8))
		r.times(t, cell(Bandwidth, 8))
		for _, size := range sizes[1:] {
			r.rate(t, cell(Bandwidth, size))
		}
		fmt.Fprintln(t)
	}
	fmt.Fprint(t, "\ncalls without arguments\tover\tus\tCPU us\n")
	for _, r := range rowsOf(all, Call) {
		fmt.Fprintf(t, "%s\t%s", r.by, r.over)
		r.times(t, cell(Call, 0))
		fmt.Fprintln(t)
	}
	fmt.Fprint(t, "\npages of 1 MiB by HTTP\tover\tMB/s\tCPU us\n")
	for _, r := range rowsOf(all, HTTP) {
		fmt.Fprintf(t, "%s\t%s", r.by, r.over)
		r.rate(t, cell(HTTP, pageBytes))
		fmt.Fprintln(t)
	}
	fmt.Fprint(t, "\nflush of 16 MiB\tover\tus\tCPU us\n")
	for _, r := range all {
		if r.Kind == Flush && r.Failed == "" {
			fmt.Fprintf(t, "%d pages written to\t%s\t%s\t%s\n", r.Pages, r.Over, us(r.NS), us(r.CPU))
		}
	}
	if slices.ContainsFunc(all, func(r Result) bool { return r.Kind == Periodic }) {
		fmt.Fprint(t, "\n64 KiB in each\tover\tus\twithout a lease\tregistered for\n")
	}
	for _, r := range all {
		if r.Kind == Periodic && r.Lease != nil {
			fmt.Fprintf(t, "%v\t%s\t%s\t%.0f %%\t%.0f %%\n",
				time.Duration(r.Lease.PeriodNS), r.Over, us(r.NS), 100*r.Lease.Late, 100*r.Lease.Held)
		}
	}
	fmt.Fprintln(t)
	measure.WriteClaims(t, Claims(all))
	return t.Flush()
}

// times writes the cells of a result in us.
func (r *row) times(w io.Writer, name string) {
	if x, ok := r.of[name]; ok && x.Failed == "" {
		fmt.Fprintf(w, "\t%s\t%s", us(x.NS), cpu(x))
	} else {
		fmt.Fprint(w, "\t-\t-")
	}
}

// rate writes the cells of a result in MB/s.
func (r *row) rate(w io.Writer, name string) {
	if x, ok := r.of[name]; ok && x.Failed == "" {
		fmt.Fprintf(w, "\t%.0f\t%s", x.MBs(), cpu(x))
	} else {
		fmt.Fprint(w, "\t-\t-")
	}
}

// cpu is the processor time of a result in us, if it was measured.
func cpu(r Result) string {
	if r.CPU == 0 {
		return "-"
	}
	return us(r.CPU)
}

func us(ns float64) string {
	if ns < 9950 {
		return fmt.Sprintf("%.3g", ns/1e3)
	}
	return fmt.Sprintf("%.0f", ns/1e3)
}
