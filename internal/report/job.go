package report

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"pinwheel/internal/console"
)

// Job gathers the reports of the ranks of a run. Of each rank it keeps the
// row of the table alone.
type Job struct {
	first Rank   // the lowest, for what all have in common
	alone bool   // one process reports of itself, and nobody expects the others here
	rows  []Rank // without what is in first and sites
	sites map[siteKey]Site
	// watches are how changes of mappings were noticed, sorted: most often all ranks have the same.
	watches []string
	// kept are the ranks by why nothing was released. The texts of each sum are those of one of them.
	kept map[reason]*group
}

// group are ranks that have something in common.
type group struct {
	ranks []Rank // World and Rank alone
	sum   Rank
}

func (j *Job) group(r *Rank) {
	if j.kept == nil {
		j.kept = map[reason]*group{}
	}
	why := reasonOf(r)
	g := j.kept[why]
	if g == nil {
		g = &group{sum: *r}
		g.sum.Sites, g.sum.History = nil, nil
		j.kept[why] = g
	} else {
		g.sum.add(r)
		g.sum.Transport = cmp.Or(g.sum.Transport, r.Transport) // the first may have registered nothing
	}
	g.ranks = append(g.ranks, Rank{World: r.World, Rank: r.Rank})
}

type siteKey struct{ name, op string }

// Add adds a rank.
func (j *Job) Add(r Rank) {
	r = r.printable()
	if len(j.rows) == 0 || compare(r, j.first) < 0 {
		j.first = r
	}
	if j.sites == nil {
		j.sites = map[siteKey]Site{}
	}
	for _, s := range r.Sites[:min(len(r.Sites), TopSites)] {
		k := siteKey{s.Name, s.Op}
		t := j.sites[k]
		s.Uses, s.Bytes, s.Late, s.StallNs = s.Uses+t.Uses, s.Bytes+t.Bytes, s.Late+t.Late, s.StallNs+t.StallNs
		s.Accuracy.add(t.Accuracy)
		j.sites[k] = s
	}
	j.group(&r)
	if i, known := slices.BinarySearch(j.watches, r.Mapping); r.Mapping != "" && !known {
		j.watches = slices.Insert(j.watches, i, r.Mapping)
	}
	r.Command, r.Library, r.Provider, r.Policy, r.Mapping, r.Transport = "", "", "", "", "", ""
	r.Sites, r.Environment, r.TransportSettings, r.History = nil, nil, nil, nil
	j.rows = append(j.rows, r)
}

// printable returns the rank with nothing in its texts that a terminal would obey.
func (r Rank) printable() Rank {
	r.Sites = slices.Clone(r.Sites)
	r.Environment, r.TransportSettings = slices.Clone(r.Environment), slices.Clone(r.TransportSettings)
	texts := []*string{
		&r.World, &r.Host, &r.Command, &r.Library, &r.Provider, &r.Policy, &r.Mapping, &r.Helper, &r.Transport,
	}
	for i := range r.Sites {
		texts = append(texts, &r.Sites[i].Name, &r.Sites[i].Op)
	}
	for i := range r.Environment {
		texts = append(texts, &r.Environment[i])
	}
	for i := range r.TransportSettings {
		texts = append(texts, &r.TransportSettings[i])
	}
	for _, t := range texts {
		*t = console.Printable(*t)
	}
	return r
}

// Write prints the report of the ranks that were added; nothing if there are none.
func (j *Job) Write(w io.Writer) error {
	if len(j.rows) == 0 {
		return nil
	}
	out := bufio.NewWriter(w)
	total := j.Total()
	j.header(out, total)
	if total.Uses == 0 {
		for _, line := range j.Reasons() {
			fmt.Fprintf(out, "@ %s.\n", line)
		}
	} else {
		ranks := j.Ranks()
		table(out, ranks, total)
		remarks(out, total)
		for _, line := range j.Reasons() {
			fmt.Fprintf(out, "%s.\n", line)
		}
		processors(out, ranks, total)
		starts(out, total)
		writeSites(out, j.Sites())
	}
	return out.Flush()
}

// First returns the lowest rank, with the texts that all have in common.
func (j *Job) First() Rank { return j.first }

// Ranks returns the ranks in order, with their counters and without their sites and histories.
func (j *Job) Ranks() []Rank {
	slices.SortStableFunc(j.rows, compare)
	return j.rows
}

// Total returns the sums over all ranks; see add. Its Mapping names all that the ranks had.
func (j *Job) Total() Rank {
	t := Rank{Rank: -1, Policy: j.first.Policy, Mapping: strings.Join(j.watches, ", ")}
	for i := range j.rows {
		t.add(&j.rows[i])
	}
	return t
}

// RanksLine says how many ranks there are.
func (j *Job) RanksLine() string {
	if j.alone && j.first.Size > 1 && j.first.Rank >= 0 {
		return fmt.Sprintf("rank %d, of %d", j.first.Rank, j.first.Size)
	}
	launched, started := len(j.rows), ""
	for _, row := range j.rows {
		if row.World != j.first.World {
			launched--
		}
	}
	if n := len(j.rows) - launched; n > 0 {
		started = fmt.Sprintf(", and %d that these started", n)
	}
	return fmt.Sprintf("%d of %d ranks%s", launched, j.first.Size, started)
}

// Sites returns the call sites of all ranks together, those with the most bytes first.
func (j *Job) Sites() (list []Site) {
	for _, s := range j.sites {
		list = append(list, s)
	}
	slices.SortFunc(list, func(x, y Site) int {
		return cmp.Or(cmp.Compare(y.Bytes, x.Bytes), cmp.Compare(x.Name, y.Name), cmp.Compare(x.Op, y.Op))
	})
	return list[:min(len(list), TopSites)]
}

// add takes in the counters of another rank. The run time is the longest.
func (t *Rank) add(r *Rank) {
	t.Seconds = max(t.Seconds, r.Seconds)
	t.PeakPinnedBytes += r.PeakPinnedBytes
	t.AveragePinnedBytes += r.AveragePinnedBytes
	t.Uses += r.Uses
	t.Plain += r.Plain
	t.Early += r.Early
	t.Demand.add(&r.Demand)
	t.Cost.add(&r.Cost)
	t.Passed += r.Passed
	t.PassedBytes += r.PassedBytes
	t.Hits += r.Hits
	t.Waited += r.Waited
	t.First += r.First
	t.Late += r.Late
	t.LateWhy.Add(r.LateWhy)
	t.HelperRegs += r.HelperRegs
	t.HelperDeregs += r.HelperDeregs
	t.Repeated += r.Repeated
	t.Lost += r.Lost
	t.StallNs += r.StallNs
	t.VerbsUsed = t.VerbsUsed || r.VerbsUsed
	if samples := t.PathSamples + r.PathSamples; samples > 0 {
		t.PathNs = (t.PathNs*float64(t.PathSamples) + r.PathNs*float64(r.PathSamples)) / float64(samples)
		t.PathSamples = samples
	}
	t.HelperCPUNs += r.HelperCPUNs
	t.HelperWakeups += r.HelperWakeups
	t.HelperActionNs += r.HelperActionNs
	t.CPUNs += r.CPUNs
	t.ServerCPUNs += r.ServerCPUNs
	t.OpeningCPUNs += r.OpeningCPUNs
	t.RegisterNs += r.RegisterNs
	t.HelperRegisterNs += r.HelperRegisterNs
	t.FirstUsesNs += r.FirstUsesNs
	if r.Parks > 0 && (t.Parks == 0 || r.FirstParkNs < t.FirstParkNs) {
		t.FirstParkNs = r.FirstParkNs
	}
	t.Parks += r.Parks
	t.ParkedNs += r.ParkedNs
	t.QuotaUsedUpNs += r.QuotaUsedUpNs
	t.Starts.Add(&r.Starts)
	t.SharedNs += r.SharedNs
	t.SharedCPUNs += r.SharedCPUNs
	t.ThresholdBytes = max(t.ThresholdBytes, r.ThresholdBytes)
	t.Calls += r.Calls
	t.Large += r.Large
	t.Kept += r.Kept
	t.Accuracy.add(r.Accuracy)
	t.Failed += r.Failed
	t.Faulted += r.Faulted
	t.Evicted += r.Evicted
	t.Invalidated += r.Invalidated
}
