package pinwheel

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"pinwheel/helper"
	"pinwheel/internal/outfile"
	"pinwheel/internal/settings"
	"pinwheel/mem"
)

// topSites is how many call sites a report names.
const topSites = 10

// report writes the report that the options ask for. That it can't is no
// reason to fail the program's last call.
func (m *Manager) report() {
	if m.opt.Report == "" {
		return
	}
	if m.opt.Report == "y" {
		_ = m.writeReport(os.Stderr) // there is nowhere else to say so
		return
	}
	err := outfile.Write(settings.Expand(m.opt.Report), m.writeReport, outfile.NoWait)
	if err != nil {
		m.warn("report", fmt.Sprintf("report: %v", err))
	}
}

// inform says in one line what New chose.
func (m *Manager) inform() {
	if m.opt.Inform == nil {
		return
	}
	o, l := &m.opt, m.provider.Limits()
	line := fmt.Sprintf("policy %s, provider %s (pinned bytes limited to %s by %s), watch %s", o.Policy, m.provider.Name(),
		limit(l.MaxPinnedBytes), l.PinnedSource, m.watchName())
	switch {
	case o.Disable:
		line += ", disabled: every use is registered on its own"
	case m.helper == nil:
		line += ", no helper thread"
	}
	o.Inform(line)
}

func (m *Manager) watchName() string {
	switch {
	case m.watcher != nil:
		return fmt.Sprint(m.watcher.Mechanism())
	case m.opt.Watcher != nil:
		return "by the program"
	}
	return "off: the program tells"
}

func limit(bytes int64) string {
	if bytes == mem.Unlimited {
		return "inf"
	}
	return mem.FormatBytes(uint64(bytes))
}

// writeReport writes the report, in the manner of mpiP: a header that says
// what ran where, then figures by topic. The helper must have stopped: what it
// predicted is read here.
func (m *Manager) writeReport(w io.Writer) error {
	s := m.Stats()
	host, _ := os.Hostname()
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(name, format string, args ...any) {
		fmt.Fprintf(tw, "%s\t"+format+"\n", append([]any{name}, args...)...)
	}
	bytes := func(n int64) string { return mem.FormatBytes(uint64(max(n, 0))) }

	fmt.Fprintln(tw, "--- Pinwheel report ---")
	line("command", "%s", filepath.Base(os.Args[0])+" "+strings.Join(os.Args[1:], " "))
	line("host, process", "%s, %d", host, os.Getpid())
	line("date, duration", "%s, %v", time.Now().Format(time.RFC3339), time.Duration(helper.NowNs()-m.beganNs).Round(time.Millisecond))
	line("policy, provider, watch", "%s, %s, %s", s.Policy, s.Provider, m.watchName())
	line("pinned", "peak %s, average %s, now %s", bytes(s.Cache.PeakPinnedBytes), bytes(s.AvgPinnedBytes), bytes(s.Cache.Pinned.Bytes))
	line("uses", "%d hits, %d first, %d late, %d waited, %d failed", s.Cache.Hits, s.Cache.First, s.Cache.Late, s.Cache.Waited, s.Cache.Failed)
	line("by the helper", "%d registered, %d released", s.Cache.HelperRegisters, s.Cache.HelperDeregisters)
	line("evicted, invalidated", "%d, %d", s.Cache.Evicted, s.Cache.Invalidated)
	line("stalled", "%v on the communication path", time.Duration(s.StallNs).Round(time.Microsecond))
	line("helper", "%v of processor time, %d events, %d lost", time.Duration(s.Helper.CPUNs).Round(time.Microsecond), s.Helper.Events, s.LostUses)
	if s.Faulted > 0 {
		line("past the cache", "%d uses, after a fault", s.Faulted)
	}
	if m.graded != nil {
		g := m.graded.Grade()
		line("predictions", "%d; %s below 0.5 %%, %s below 5 %% of the interval", g.N, share(g.Below05, g.N), share(g.Below5, g.N))
	}
	if err := tw.Flush(); err != nil || m.graded == nil {
		return err
	}
	return m.writeSites(w)
}

// writeSites writes the call sites that used the most bytes.
func (m *Manager) writeSites(w io.Writer) error {
	sites := m.graded.Sites(topSites)
	if len(sites) == 0 {
		return nil
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "\nregion\tuses\tbytes\tpredicted\tbelow 0.5 %\tbelow 5 %\tcall site")
	for _, s := range sites {
		var frames []string
		for _, f := range s.Frames {
			if f != 0 {
				frames = append(frames, fmt.Sprintf("%#x", f))
			}
		}
		fmt.Fprintf(tw, "%d\t%d\t%s\t%d\t%s\t%s\t%s\n", s.Region, s.Uses, mem.FormatBytes(s.Bytes), s.N,
			share(s.Below05, s.N), share(s.Below5, s.N), strings.Join(frames, ";"))
	}
	return tw.Flush()
}

func share(part, all int64) string {
	if all == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(part)/float64(all))
}
