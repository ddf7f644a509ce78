package compare

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"pinwheel/mem"
)

// WriteText prints the measures and the verdict for people.
func (s Summary) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "@ %s, %s; medians, all ranks together\n", count(s.Rounds, "round"), count(s.Ranks, "rank"))
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\tpinned on average\tpeak\tprocessor time\tto start\tto end\trun time\tour registrations\t")
	for _, m := range s.Modes {
		registrations := "-"
		if m.Mode == Pinwheel {
			registrations = Seconds(m.RegisterNs.Median)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%.2f s\t%s\t\n",
			m.Mode, Bytes(m.AvgPinnedBytes.Median), Bytes(m.PeakBytes.Median),
			Seconds(m.CPUNs.Median), Seconds(m.StartCPUNs.Median), Seconds(m.EndCPUNs.Median), m.Seconds.Median, registrations)
	}
	t.Flush()
	fmt.Fprint(&b, legend)
	if s.CapturedLive != nil {
		fmt.Fprintf(&b, "captured_live   %s of what no cache saves against the transport's cache\n",
			s.CapturedLive.Text("%.2f"))
	}
	fmt.Fprintf(&b, "processor time  %s against the transport's cache; no cache: %s\n",
		s.CPU.Percent(), s.CPUNone.Percent())
	if s.Beyond != nil {
		fmt.Fprintf(&b, "                %s without Pinwheel's registrations; Pinwheel counts %.2f %% that it adds besides,\n                without the opening\n",
			s.Beyond.Percent(), 100*s.Added.Median)
	}
	fmt.Fprintf(&b, "run time        %s against the transport's cache\n", s.Time.Percent())
	fmt.Fprintf(&b, "start and end   %s and %s more for each rank\n", Seconds(s.StartNs.Median), Seconds(s.EndNs.Median))
	if s.Beyond != nil {
		fmt.Fprintf(&b, "opening         %s for each rank, after its first large message\n", Seconds(s.OpeningNs.Median))
		fmt.Fprintf(&b, "late            %.2f %% of the needs after the first\n", 100*s.Late)
	}
	fmt.Fprintf(&b, "\n%s\n", strings.Join(s.Verdict(), "\n"))
	_, err := io.WriteString(w, b.String())
	return err
}

// legend explains the columns and the intervals.
const legend = `pinned: VmPin and VmLck, from MPI_Init's return to MPI_Finalize, as are processor time (all threads)
and run time. to start, to end: processor time before and after that. Below: medians of the
rounds' ratios, and in brackets their 95 % interval by ranks.
`

// Text prints the estimate by a format for each number.
func (e Estimate) Text(format string) string {
	if e.N < 2 {
		return fmt.Sprintf(format+" (one round)", e.Median)
	}
	text := fmt.Sprintf(format+" ("+format+" to "+format, e.Median, e.Low, e.High)
	if e.Coverage < confidence {
		return text + fmt.Sprintf(", a %.0f %% interval)", 100*e.Coverage)
	}
	return text + ")"
}

// Percent prints a ratio as its difference from 1.
func (e Estimate) Percent() string {
	e.Median, e.Low, e.High = 100*(e.Median-1), 100*(e.Low-1), 100*(e.High-1)
	return e.Text("%+.1f %%")
}

// Bytes prints a number of bytes.
func Bytes(n float64) string { return mem.FormatBytes(uint64(max(n, 0))) }

// Seconds prints nanoseconds.
func Seconds(ns float64) string {
	if ns > -1e9 && ns < 1e9 {
		return fmt.Sprintf("%.1f ms", ns/1e6)
	}
	return fmt.Sprintf("%.2f s", ns/1e9)
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
