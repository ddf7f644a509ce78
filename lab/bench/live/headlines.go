package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"pinwheel/internal/measure"
	"pinwheel/internal/outfile"
	"pinwheel/internal/tools/compare"
)

type headlinesCmd struct {
	Results string `default:"results" help:"Directory of what was measured."`
}

const headlinesFile = "headlines.md"

// Run implements the command headlines.
func (c *headlinesCmd) Run() error {
	text, err := headlines(c.Results)
	if err != nil {
		return err
	}
	return outfile.WriteText(filepath.Join(c.Results, headlinesFile), text)
}

const headlinesHead = `# Ten numbers

Made by "make results-headlines" from the raw data in this directory; do not edit. Each is the
median of its rounds, with the 95 % interval of the median by ranks (of fewer than six rounds: least
and greatest), compared with the alternative in the same rounds. The worst that we have measured are
among them. None is of an RDMA adapter: there was none.

| what | compared with | figure | rounds | job | user, watch | measured |
|---|---|---:|---:|---|---|---|
`

// number is a row of the page.
type number struct {
	what, beside, figure string
	rounds               int
	job, user, file      string
}

func (h *number) markdown() string {
	return fmt.Sprintf("| %s | %s | %s | %d | %s | %s | [%s](%s) |\n", h.what, h.beside, h.figure, h.rounds, h.job, h.user, h.file, h.file)
}

// headlines returns the page.
func headlines(results string) (string, error) {
	var root, nobody, papers state
	files := map[*state]string{&root: "live/runs.jsonl", &nobody: "live/nobody.jsonl", &papers: "papers/live.jsonl"}
	for s, file := range files {
		if err := errors.Join(s.Read(filepath.Join(results, file)), s.Head.Publishable()); err != nil {
			return "", fmt.Errorf("%s: %w", file, err)
		}
	}
	all := map[*state][]measured{&root: root.measured(), &nobody: nobody.measured()}
	var rows []number
	live := func(s *state, row, what string, m compare.Mode, figure func(compare.Versus) string) {
		for _, r := range all[s] {
			if r.whole && r.Row == row {
				of := r.summary.Of(compare.Pinwheel)
				rows = append(rows, number{what, m.String(), figure(r.summary.Versus(compare.Pinwheel, m)), of.Rounds, r.Row,
					r.User + ", " + cmp.Or(strings.Join(of.Watches, " and "), "none"), files[s]})
			}
		}
	}
	pins := func(v compare.Versus) string { return v.Memory.Percent() }
	takes := func(v compare.Versus) string { return v.Time.Percent() }
	works := func(v compare.Versus) string { return v.CPU.Percent() }
	live(&root, ucx+"/halo.8.2.idle", "pinned memory, a core is idle", compare.Cache, pins)
	live(&root, ucx+"/halo.8.2.idle", "run time, a core is idle", compare.Cache, takes)
	live(&root, ucx+"/halo.8.2", "pinned memory, every core has a rank", compare.Cache, pins)
	live(&root, ucx+"/halo.8.2", "pinned memory, every core has a rank", compare.None, pins)
	live(&root, ucx+"/halo.8.2", "run time, every core has a rank", compare.None, takes)
	live(&nobody, ucx+"/halo.8.2.idle", "pinned memory of a normal user, a core is idle", compare.Cache, pins)
	live(&root, ucx+"/latency.17K.2.idle", "processor time where nothing can be saved", compare.Cache, works)
	live(&root, slowest(all[&root]), "run time, the worst of all rows", compare.Cache, takes)
	row, late := papers.slowestMessage()
	rows = append(rows, number{"what a message takes, the worst of all rows", compare.Cache.String(), late.Percent(), late.N, row, "root", files[&papers]})
	path, err := pathNs(filepath.Join(results, "live", "bench-path.txt"))
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString(headlinesHead)
	for i := range rows {
		b.WriteString(rows[i].markdown())
	}
	fmt.Fprintf(&b, "\nA hit on the path of a message adds %.0f ns to it ([live/bench-path.txt](live/bench-path.txt), by `make bench-path`).\n"+
		"`make bench-live` and `make bench-paper` make the others.\n", path)
	for _, s := range []*state{&root, &nobody, &papers} {
		fmt.Fprintf(&b, "\n%s:\n%s", files[s], s.Head.Describe(nil))
	}
	b.WriteString(headlinesTail)
	return b.String(), nil
}

const headlinesTail = `
Pages below this one: [jobs on the software device](live/README.md) and those of [a normal
user](live/nobody.md), [replays of NAS runs](README.md) and [what they cost](helper-share.md), [the
papers' figures](papers.md), [never stale](stale/README.md), [serving files](files/README.md),
[pools](prepare/README.md).
`

// slowest is the row whose run time Pinwheel lengthens most.
func slowest(rows []measured) (row string) {
	worst := 0.0
	for _, m := range rows {
		if !m.whole {
			continue
		}
		if e := m.summary.Versus(compare.Pinwheel, compare.Cache).Time; e.Median > worst {
			row, worst = m.Row, e.Median
		}
	}
	return row
}

// slowestMessage is the row whose messages Pinwheel lengthens most.
func (s *state) slowestMessage() (row string, worst measure.Estimate) {
	m := s.messages()
	for _, r := range m.rows {
		slower, _ := m.beside(r, way{compare.Pinwheel, false})
		if len(slower) == 0 {
			continue
		}
		if e := measure.Estimated(slower); e.Median > worst.Median {
			row, worst = r, e
		}
	}
	return row, worst
}

var addedNs = regexp.MustCompile(`(?m)^over pass-through.*pinwheel \+([\d.]+) ns$`)

// pathNs is what a message costs under Pinwheel, by what bench-path has printed.
func pathNs(file string) (float64, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	m := addedNs.FindSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf("%s: it does not say what pinwheel adds", file)
	}
	return strconv.ParseFloat(string(m[1]), 64)
}
