package report

import (
	"cmp"
	"fmt"
	"io"
	"text/tabwriter"

	"pinwheel/mem"
)

func (j *Job) header(b io.Writer, total Rank) {
	r := j.first
	fmt.Fprintf(b, "@ Pinwheel\n@ Command  %s\n@ MPI      %s, %s\n@ Policy   %s\n",
		r.Command, cmp.Or(r.Library, "none"), j.RanksLine(), r.Policy)
	if r.Provider != "" {
		fmt.Fprintf(b, "@ Provider %s\n", r.Provider)
	}
	if total.Mapping != "" {
		fmt.Fprintf(b, "@ Mappings %s\n", total.Mapping)
	}
	fmt.Fprintf(b, "@ Helper   %s\n@ Run time %.3f s\n", r.Helper, total.Seconds)
	for _, e := range r.Environment {
		fmt.Fprintf(b, "@ Setting  %s\n", e)
	}
}

func table(b io.Writer, ranks []Rank, total Rank) {
	fmt.Fprintf(b, "\n@--- Registered memory and registrations ---\n")
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "rank\thost\tpeak\taverage\tuses\thits\tfirst\tlate\twaited\tahead\treleased\tlost\t<0.5 %\t<5 %\t"+
		"stall ms\thelper ms\t")
	for _, r := range append(ranks, total) {
		name := Name(r.World, r.Rank)
		if r.Rank < 0 {
			name = "*"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%s\t%s\t%.1f\t%.1f\t\n", name, cmp.Or(r.Host, "*"),
			mem.FormatBytes(uint64(r.PeakPinnedBytes)), mem.FormatBytes(uint64(r.AveragePinnedBytes)),
			r.Uses, r.Hits, r.First, r.LateUses(), r.Waited, r.HelperRegs, r.HelperDeregs, r.Lost,
			Percent(r.Err05, r.Predictions), Percent(r.Err5, r.Predictions), float64(r.StallNs)/1e6, float64(r.HelperCPUNs)/1e6)
	}
	w.Flush()
}

// Percent prints a share of so many.
func Percent(share float64, of int64) string {
	if of == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f %%", 100*share)
}

// legend explains the columns, in their order.
const legend = `peak, average: memory that Pinwheel held registered. uses: registrations that the transport asked
for; each was registered already (hits), had to be registered for the first time (first), or was late:
had to be registered again, or waited for a registration under way (waited). ahead, released: registered
and deregistered by the helper thread; lost: uses that it did not hear of. <0.5 %, <5 %: predictions of the next use that were wrong
by less than that share of the interval. stall: time that communication spent waiting for
registrations; helper: processor time of the helper thread.
`

func remarks(b io.Writer, total Rank) {
	fmt.Fprint(b, legend)
	if total.PathSamples > 0 {
		fmt.Fprintf(b, "Overhead on the path of a message: %.0f ns beside registration, the mean of %d hits.\n",
			total.PathNs, total.PathSamples)
	}
	if total.Calls > 0 {
		fmt.Fprintf(b, "MPI calls that were wrapped: %d.\n", total.Calls)
	}
	if total.Plain > 0 {
		fmt.Fprintf(b, "Besides, %s.\n", leftAlone(&total))
	}
	if total.Failed+total.Evicted+total.Invalidated > 0 {
		fmt.Fprintf(b, "Registrations that failed: %d; evicted for room: %d; invalidated: %d.\n",
			total.Failed, total.Evicted, total.Invalidated)
	}
	if total.Faulted > 0 {
		fmt.Fprintf(b, "Uses registered past the cache after a fault: %d.\n", total.Faulted)
	}
}

// processors prints where processor time went, and when helpers were parked.
func processors(b io.Writer, ranks []Rank, total Rank) {
	fmt.Fprintf(b, "\n@--- Processor time ---\n")
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w,
		"rank\tprogram s\thelper ms\tserver ms\tregistering ms\tby helper ms\tshared s\tused\tparked s\tfrom s\thelper\t")
	for _, r := range append(ranks, total) {
		name, from := Name(r.World, r.Rank), "-"
		if r.Rank < 0 {
			name = "*"
		}
		if r.Parks > 0 {
			from = fmt.Sprintf("%.1f", float64(r.FirstParkNs)/1e9)
		}
		fmt.Fprintf(w, "%s\t%.2f\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%s\t%.1f\t%s\t%s\t\n",
			name, float64(r.CPUNs)/1e9, float64(r.HelperCPUNs)/1e6, float64(r.ServerCPUNs)/1e6,
			float64(r.RegisterNs)/1e6, float64(r.HelperRegisterNs)/1e6, float64(r.SharedNs)/1e9,
			Percent(float64(r.SharedCPUNs)/float64(max(r.SharedNs, 1)), r.SharedNs), float64(r.ParkedNs)/1e9, from, r.Helper)
	}
	w.Flush()
	fmt.Fprint(b, processorLegend)
	if line := total.OwnLine(); line != "" {
		fmt.Fprintf(b, "%s.\n", line)
	}
}

const processorLegend = `program: the program's own threads, with MPI and the transport. server: the threads that start
Pinwheel and register what is no hit. registering: time in registrations and deregistrations, by
any thread; by helper: the helper's, with the cache around them. shared: the helper ran on the core of
its rank, of which it used so much. parked: the helper found no idle core and did not run, at first
from this time on.
`

// starts prints how far from their plan registrations began.
func starts(b io.Writer, total Rank) {
	if total.Starts.Count() == 0 {
		return
	}
	fmt.Fprintf(b, "\n@--- Start of planned registrations, in us after (-: before) the plan ---\n")
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "number\tp50\tp99\tlatest\t")
	us := func(ns int64) float64 { return float64(ns) / 1e3 }
	h := &total.Starts
	fmt.Fprintf(w, "%d\t%.1f\t%.1f\t%.1f\t\n", h.Count(), us(h.QuantileNs(0.5)), us(h.QuantileNs(0.99)), us(h.MaxNs()))
	w.Flush()
}

// writeSites prints call sites.
func writeSites(b io.Writer, list []Site) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintf(b, "\n@--- Call sites by bytes registered ---\n")
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "call\tuses\tbytes\tlate\tstall ms\tpredicted\t<0.5 %\t<5 %\tsite")
	for _, s := range list {
		fmt.Fprintf(w, "%s\t%d\t%s\t%d\t%.1f\t%d\t%s\t%s\t%s\n",
			s.Op, s.Uses, mem.FormatBytes(uint64(s.Bytes)), s.Late, float64(s.StallNs)/1e6, s.Predictions,
			Percent(s.Err05, s.Predictions), Percent(s.Err5, s.Predictions), s.Name)
	}
	w.Flush()
}
