package report

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
)

// Job gathers the reports of the ranks of a run. Of each rank it keeps the
// row of the table alone.
type Job struct {
	first Rank   // the lowest, for what all have in common
	rows  []Rank // without what is in first and sites
	sites map[siteKey]Site
	// kept are the ranks by why nothing was released. The texts of each sum are those of one of them.
	kept map[reason]*group
}

// group are ranks that have something in common.
type group struct {
	names []string
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
	}
	g.names = append(g.names, Name(r.World, r.Rank))
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
		s.Uses, s.Bytes = s.Uses+t.Uses, s.Bytes+t.Bytes
		s.Accuracy.add(t.Accuracy)
		j.sites[k] = s
	}
	j.group(&r)
	r.Command, r.Library, r.Provider, r.Policy, r.Mapping, r.Transport = "", "", "", "", "", ""
	r.Sites, r.Environment, r.TransportSettings, r.History = nil, nil, nil, nil
	j.rows = append(j.rows, r)
}

// printable returns the rank with nothing in its texts that a terminal would obey.
func (r Rank) printable() Rank {
	r.Sites, r.Environment, r.TransportSettings = slices.Clone(r.Sites), slices.Clone(r.Environment), slices.Clone(r.TransportSettings)
	texts := []*string{&r.World, &r.Host, &r.Command, &r.Library, &r.Provider, &r.Policy, &r.Mapping, &r.Helper, &r.Transport}
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
		*t = strings.Map(func(c rune) rune {
			if unicode.IsPrint(c) {
				return c
			}
			return '?'
		}, *t)
	}
	return r
}

// Write prints the report of the ranks that were added; nothing if there are none.
func (j *Job) Write(w io.Writer) error {
	if len(j.rows) == 0 {
		return nil
	}
	slices.SortStableFunc(j.rows, compare)
	out := bufio.NewWriter(w)
	total := sum(j.rows)
	total.Policy = j.first.Policy
	j.header(out, total)
	if total.Uses == 0 {
		fmt.Fprintf(out, "@ Nothing was registered through Pinwheel: %s.\n", whyUnused(&total))
	} else {
		table(out, j.rows, total)
		remarks(out, total)
		for _, line := range j.Reasons() {
			fmt.Fprintf(out, "%s.\n", line)
		}
		processors(out, j.rows, total)
		j.writeSites(out)
	}
	return out.Flush()
}

// sum is the aggregate line.
func sum(ranks []Rank) Rank {
	t := Rank{Rank: -1}
	for i := range ranks {
		t.add(&ranks[i])
	}
	return t
}

// add takes in the counters of another rank. The run time is the longest.
func (t *Rank) add(r *Rank) {
	t.Seconds = max(t.Seconds, r.Seconds)
	t.PeakPinnedBytes += r.PeakPinnedBytes
	t.AveragePinnedBytes += r.AveragePinnedBytes
	t.Uses += r.Uses
	t.Plain += r.Plain
	t.Hits += r.Hits
	t.Waited += r.Waited
	t.First += r.First
	t.Late += r.Late
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
	t.CPUNs += r.CPUNs
	t.ServerCPUNs += r.ServerCPUNs
	t.RegisterNs += r.RegisterNs
	t.HelperRegisterNs += r.HelperRegisterNs
	if r.Parks > 0 && (t.Parks == 0 || r.FirstParkNs < t.FirstParkNs) {
		t.FirstParkNs = r.FirstParkNs
	}
	t.Parks += r.Parks
	t.ParkedNs += r.ParkedNs
	t.ThresholdBytes = max(t.ThresholdBytes, r.ThresholdBytes)
	t.Large += r.Large
	t.Kept += r.Kept
	t.Accuracy.add(r.Accuracy)
	t.Failed += r.Failed
	t.Faulted += r.Faulted
	t.Evicted += r.Evicted
	t.Invalidated += r.Invalidated
}
