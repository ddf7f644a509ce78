package compare

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"pinwheel/internal/measure"
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
	s.ratios(&b)
	fmt.Fprintf(&b, "for itself      %s: what the transport pins whoever keeps registrations\n",
		Bytes(s.TransportBytes.Median))
	if captured := s.Of(Pinwheel).CapturedLive; captured != nil {
		fmt.Fprintf(&b, "can be saved    %s, %.0f %% of what its cache pins", Bytes(s.SavableBytes.Median), 100*s.Savable)
		if s.Managed > 0 {
			fmt.Fprintf(&b, "; of that Pinwheel saved %s", captured.Share())
		}
		fmt.Fprintln(&b)
	}
	for _, m := range s.BeatenBy() {
		v := s.Versus(Pinwheel, m)
		fmt.Fprintf(&b, "beaten by       %s, which takes less %s", m, v.which(more))
		if open := v.which(unknown); open != "" {
			fmt.Fprintf(&b, "; %s: not known", open)
		}
		fmt.Fprintln(&b)
	}
	if s.Passed > 0 {
		fmt.Fprintf(&b, "passed by       %s as large as messages, of %d, went past Pinwheel: what those save\n"+
			"                and cost is the doing of no cache\n", count(int(s.Passed), "registration"), s.Passed+s.Managed)
	}
	if s.Beyond != nil {
		fmt.Fprintf(&b, "our share       %.2f %% of processor time is what Pinwheel counts that it adds beside\n"+
			"                registrations and the opening; without its registrations, processor time is\n"+
			"                %s beside the cache's\n",
			100*s.Added.Median, s.Beyond.Change())
	}
	fmt.Fprintf(&b, "start and end   %s and %s more for each rank\n", Seconds(s.StartNs.Median), Seconds(s.EndNs.Median))
	if s.Beyond != nil {
		fmt.Fprintf(&b, "opening         %s for each rank, once its messages are large\n", Seconds(s.OpeningNs.Median))
		fmt.Fprintf(&b, "late            %.2f %% of the uses after the first\n", 100*s.Of(Pinwheel).Late)
	}
	fmt.Fprintf(&b, "\n%s\n", strings.Join(s.Verdict(), "\n"))
	_, err := io.WriteString(w, b.String())
	return err
}

// legend explains the columns.
const legend = `pinned: VmPin and VmLck, from MPI_Init's return to MPI_Finalize, as are processor time (all threads)
and run time. to start, to end: processor time before and after that.
`

// ratios prints what each mode takes beside another.
func (s Summary) ratios(b *strings.Builder) {
	brackets := "in brackets their 95 % interval by ranks"
	if s.Rounds < measure.FewestRounds {
		brackets = "in brackets the least and the greatest"
	}
	fmt.Fprintf(b, "\nMedians of the rounds' differences, %s. Pinned memory is a share of what\n"+
		"the transport's cache pins.\n", brackets)
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\tpinned on average\tprocessor time\trun time\t")
	for _, v := range s.Beside {
		fmt.Fprintf(t, "%s beside %s\t%s\t%s\t%s\t\n", v.Mode, v.Other, v.Memory.Change(), v.CPU.Change(), v.Time.Change())
	}
	t.Flush()
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
