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
	r.Command, r.Library, r.Provider, r.Policy, r.Mapping, r.Helper = "", "", "", "", "", ""
	r.Sites, r.Environment = nil, nil
	j.rows = append(j.rows, r)
}

// printable returns the rank with nothing in its texts that a terminal would obey.
func (r Rank) printable() Rank {
	r.Sites, r.Environment = slices.Clone(r.Sites), slices.Clone(r.Environment)
	texts := []*string{&r.World, &r.Host, &r.Command, &r.Library, &r.Provider, &r.Policy, &r.Mapping, &r.Helper}
	for i := range r.Sites {
		texts = append(texts, &r.Sites[i].Name, &r.Sites[i].Op)
	}
	for i := range r.Environment {
		texts = append(texts, &r.Environment[i])
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
		fmt.Fprintf(out, "@ Nothing was registered through Pinwheel: %s.\n", whyNothing(total))
	} else {
		table(out, j.rows, total)
		remarks(out, total)
		j.writeSites(out)
	}
	return out.Flush()
}

// sum is the aggregate line: counters are added up, and the run time is the longest.
func sum(ranks []Rank) Rank {
	t := Rank{Rank: -1}
	var path float64
	for _, r := range ranks {
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
		t.PathSamples += r.PathSamples
		path += r.PathNs * float64(r.PathSamples)
		t.HelperCPUNs += r.HelperCPUNs
		t.Accuracy.add(r.Accuracy)
		t.Failed += r.Failed
		t.Faulted += r.Faulted
		t.Evicted += r.Evicted
		t.Invalidated += r.Invalidated
	}
	if t.PathSamples > 0 {
		t.PathNs = path / float64(t.PathSamples)
	}
	return t
}
