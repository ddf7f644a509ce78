// Package page draws the report of a job as one file of HTML: no script, no font and no
// picture from elsewhere, because clusters have no network. It follows the reader's choice of
// light or dark, and prints in black on white.
//
// The charts over time are those of internal/chart; the tables and bars beside them are HTML, which
// a reader can select, search and have read aloud.
package page

import (
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"

	"pinwheel/internal/report"
	"pinwheel/internal/version"
	"pinwheel/mem"
)

// Page gathers the reports of the ranks of a job. Of each it keeps the row of the table and a
// short history.
type Page struct {
	job       report.Job
	histories map[string]history // by the name of the rank
}

// Add adds a rank.
func (p *Page) Add(r report.Rank) {
	if p.histories == nil {
		p.histories = map[string]history{}
	}
	if r.History != nil && r.Seconds > 0 && r.Seconds < longestRunSeconds {
		p.histories[report.Name(r.World, r.Rank)] = newHistory(r.History, r.Seconds)
	}
	p.job.Add(r)
}

//go:embed page.html.tmpl
var text string

//go:embed page.css
var css string

var page = template.Must(template.New("page").Parse(text))

// Write writes the page of the ranks that were added.
func (p *Page) Write(w io.Writer) error { return page.Execute(w, p.content()) }

// content is what the template shows.
type content struct {
	CSS     template.CSS
	Version string
	First   report.Rank
	Seconds float64
	Title   string
	Ranks   string
	Facts   []fact
	Reasons []string
	Charts  []figure
	Rows    []row
	More    []row // the others, less interesting
	Sites   []site
}

// fact is one number of the summary.
type fact struct{ Name, Value, Note string }

// figure is a chart and how to read it.
type figure struct {
	Title, Caption string
	SVG            template.HTML
}

type row struct {
	Name, Host, Average, Peak, Hits, Stall, Program, Helper, Parked string
	Uses, Late, Ahead, Released                                     uint64
	StallBar                                                        int // per cent of the longest
}

type site struct {
	Op, Name, Bytes, Stall, Predicted string
	Uses, Late                        int64
	Bar                               int // per cent of the most uses
}

// mostRows is how many ranks the table shows at once. Of more, it shows those that waited longest.
const mostRows = 16

func (p *Page) content() content {
	first, total, ranks := p.job.First(), p.job.Total(), p.job.Ranks()
	c := content{
		CSS: template.CSS(css), Version: version.String(),
		First: first, Seconds: total.Seconds, Title: title(first.Command), Ranks: p.job.RanksLine(),
		Facts: facts(&total), Reasons: p.job.Reasons(), Charts: p.charts(ranks),
	}
	if line := total.OwnLine(); line != "" {
		c.Reasons = append(c.Reasons, line)
	}
	c.Rows, c.More = rows(ranks)
	most := int64(1)
	for _, s := range p.job.Sites() {
		most = max(most, s.Uses)
	}
	for _, s := range p.job.Sites() {
		c.Sites = append(c.Sites, site{
			Op: s.Op, Name: s.Name, Uses: s.Uses, Late: s.Late, Bytes: bytes(s.Bytes), Stall: ms(s.StallNs),
			Predicted: report.Percent(s.Err5, s.Predictions), Bar: int(100 * s.Uses / most),
		})
	}
	return c
}

// title is the program, without its directories and arguments.
func title(command string) string {
	name, _, _ := strings.Cut(command, " ")
	return name[strings.LastIndexByte(name, '/')+1:]
}

func ms(ns int64) string { return fmt.Sprintf("%.1f", float64(ns)/1e6) }

// duration is a time for people, in ms up to a second.
func duration(ns int64) string {
	if ns < 1e9 {
		return ms(ns) + " ms"
	}
	return seconds(ns) + " s"
}

func seconds(ns int64) string { return fmt.Sprintf("%.2f", float64(ns)/1e9) }

func share(n, of uint64) string {
	if of == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(n)/float64(of))
}

func bytes(n int64) string { return mem.FormatBytes(uint64(n)) }

func facts(t *report.Rank) []fact {
	return []fact{
		{"Pinned on average", bytes(t.AveragePinnedBytes),
			fmt.Sprintf("all ranks; their peaks add up to %s", bytes(t.PeakPinnedBytes))},
		{"Uses", fmt.Sprint(t.Uses), fmt.Sprintf("%s found their memory registered", share(t.Hits, t.Uses))},
		{"Late", fmt.Sprint(t.LateUses()),
			fmt.Sprintf("%s of the uses; besides, %d first ones", share(t.LateUses(), t.Uses), t.First)},
		{"Stalled", duration(int64(t.StallNs)), "waiting for registrations, all ranks"},
		{"Released", fmt.Sprint(t.HelperDeregs), fmt.Sprintf("%d registered ahead", t.HelperRegs)},
		{"Processor time", duration(t.CPUNs),
			fmt.Sprintf("of the program; helpers %s, registering %s", duration(t.HelperCPUNs), duration(t.RegisterNs))},
	}
}

func rows(ranks []report.Rank) (shown, more []row) {
	longest := uint64(1)
	for _, r := range ranks {
		longest = max(longest, r.StallNs)
	}
	of := func(ranks []report.Rank) (list []row) {
		for _, r := range ranks {
			list = append(list, row{
				Name: report.Name(r.World, r.Rank), Host: r.Host,
				Average: bytes(r.AveragePinnedBytes), Peak: bytes(r.PeakPinnedBytes),
				Uses: r.Uses, Hits: share(r.Hits, r.Uses), Late: r.LateUses(),
				Stall: ms(int64(r.StallNs)), StallBar: int(100 * float64(r.StallNs) / float64(longest)),
				Ahead: r.HelperRegs, Released: r.HelperDeregs,
				Program: seconds(r.CPUNs), Helper: ms(r.HelperCPUNs), Parked: seconds(r.ParkedNs),
			})
		}
		return list
	}
	if len(ranks) <= mostRows {
		return of(ranks), nil
	}
	byStall := slices.Clone(ranks)
	slices.SortStableFunc(byStall, func(a, b report.Rank) int { return cmp.Compare(b.StallNs, a.StallNs) })
	return of(byStall[:mostRows]), of(byStall[mostRows:])
}
