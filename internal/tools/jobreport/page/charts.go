package page

import (
	"fmt"
	"html/template"
	"image/color"
	"math"

	"pinwheel/internal/chart"
	"pinwheel/internal/report"
)

const (
	width       = 900.0
	mostLines   = 8   // ranks that get a chart of their own; more become rows of one picture
	mostPicture = 420 // pixels of its height
)

// timeline is what all ranks have measured, over the time of the longest run.
type timeline struct {
	names                         []string
	ns                            int64
	pinned, parked, stalled, late [][]float64 // of each rank
	helped                        []bool
}

func (p *Page) timeline(ranks []report.Rank) timeline {
	var t timeline
	for _, h := range p.histories {
		t.ns = max(t.ns, h.ns)
	}
	for _, r := range ranks {
		name := report.Name(r.World, r.Rank)
		h, known := p.histories[name]
		if !known {
			continue
		}
		t.names = append(t.names, name)
		t.pinned = append(t.pinned, h.over(h.pinned, t.ns, columns))
		t.parked = append(t.parked, h.over(h.parked, t.ns, columns))
		t.stalled = append(t.stalled, h.over(h.stalled, t.ns, columns))
		t.late = append(t.late, h.over(h.late, t.ns, columns))
		t.helped = append(t.helped, r.Helper != "none")
	}
	return t
}

// charts draws the ranks' histories.
func (p *Page) charts(ranks []report.Rank) []figure {
	t := p.timeline(ranks)
	if len(t.names) == 0 || t.ns == 0 {
		return nil
	}
	list := []figure{t.sumChart()}
	if len(t.names) > 1 && len(t.names) <= mostLines {
		list = append(list, t.rankCharts())
	} else if len(t.names) > mostLines {
		list = append(list, t.rankPicture())
	}
	list = append(list, t.waitCharts())
	return append(list, t.helperPicture())
}

func inline(f *chart.Figure) template.HTML { return template.HTML(f.Inline()) }

// x returns the columns' beginnings, in nanoseconds, and the end.
func (t *timeline) x() (x []float64) {
	for i := range columns + 1 {
		x = append(x, float64(i)*float64(t.ns)/columns)
	}
	return x
}

// steps repeats the last value at the end.
func steps(values []float64) []float64 {
	return append(values[:len(values):len(values)], values[len(values)-1])
}

// sum adds up the ranks; what has ended counts nothing.
func sum(rows [][]float64) []float64 {
	out := make([]float64, columns)
	for _, row := range rows {
		for i, v := range row {
			if !math.IsNaN(v) {
				out[i] += v
			}
		}
	}
	return out
}

// panel is one over the time of the run.
func (t *timeline) panel(title, yLabel string, yUnit float64, s ...chart.Series) chart.Panel {
	p := chart.Panel{
		Title: title, XLabel: "time (s)", XUnit: 1e9, XMax: float64(t.ns), YLabel: yLabel, YUnit: yUnit, Series: s,
	}
	for i := range p.Series {
		p.Series[i].Step, p.Series[i].X, p.Series[i].Y = true, t.x(), steps(p.Series[i].Y)
	}
	return p
}

// unitOf returns a unit for values up to most bytes.
func unitOf(most float64) (unit float64, name string) {
	unit, name = 1<<10, "KiB"
	for _, larger := range []string{"MiB", "GiB", "TiB"} {
		if most < 2*unit*1024 {
			break
		}
		unit, name = unit*1024, larger
	}
	return unit, name
}

func highest(rows ...[]float64) (most float64) {
	for _, row := range rows {
		for _, v := range row {
			if v > most { // not if it is NaN
				most = v
			}
		}
	}
	return most
}

func (t *timeline) sumChart() figure {
	all := sum(t.pinned)
	unit, name := unitOf(highest(all))
	f := &chart.Figure{Title: "Pinned memory of all ranks over time", PanelWidth: width, PanelHeight: 240}
	f.Panels = []chart.Panel{t.panel("", "pinned ("+name+")", unit, area("var(--pinned)", all))}
	caption := fmt.Sprintf("What Pinwheel held registered, as a mean over each %s.", interval(t.ns))
	return figure{"Pinned memory of all ranks", caption, inline(f)}
}

// area is a shaded line; panel completes it.
func area(color string, y []float64) chart.Series {
	return chart.Series{Color: color, Fill: true, Y: y}
}

// interval is the time of a column.
func interval(ns int64) string {
	s := float64(ns) / columns / 1e9
	switch {
	case s < 1e-3:
		return fmt.Sprintf("%.0f µs", s*1e6)
	case s < 1:
		return fmt.Sprintf("%.0f ms", s*1e3)
	}
	return fmt.Sprintf("%.1f s", s)
}

// pairs is a figure of small panels, two beside each other.
func pairs(title string, panels ...chart.Panel) *chart.Figure {
	return &chart.Figure{Title: title, Columns: 2, PanelWidth: width / 2, PanelHeight: 180, Panels: panels}
}

func (t *timeline) rankCharts() figure {
	f := pairs("Pinned memory of each rank over time")
	most := highest(t.pinned...)
	unit, name := unitOf(most)
	for i, row := range t.pinned {
		p := t.panel("rank "+t.names[i], "pinned ("+name+")", unit, area("var(--pinned)", row))
		p.YMax = max(most*1.05, unit)
		f.Panels = append(f.Panels, p)
	}
	return figure{"Pinned memory of each rank", "The same scale for all.", inline(f)}
}

// picture draws a row for each rank.
func (t *timeline) picture(title string, rows [][]float64, c func(v float64) color.NRGBA) *chart.Figure {
	const around = 64 // axis and labels
	height := min(max(float64(len(rows))*14, 28), mostPicture)
	return &chart.Figure{Title: title, PanelWidth: width, PanelHeight: height + around, Panels: []chart.Panel{{
		XLabel: "time (s)", YLabel: "rank", XUnit: 1e9, XMax: float64(t.ns),
		Grid: &chart.Grid{Rows: t.names, Values: rows, Color: c},
	}}}
}

func (t *timeline) rankPicture() figure {
	most := max(highest(t.pinned...), 1)
	c := func(v float64) color.NRGBA { return chart.Cividis(v / most) }
	f := t.picture("Pinned memory of each rank over time", t.pinned, c)
	return figure{"Pinned memory of each rank", "A row ends where its rank does.",
		scale("0", bytes(int64(most)), chart.Cividis) + inline(f)}
}

// scale draws a scale of colors between two texts.
func scale(from, to string, c func(v float64) color.NRGBA) template.HTML {
	var stops string
	for i := range 9 {
		k := c(float64(i) / 8)
		stops += fmt.Sprintf(",rgb(%d %d %d)", k.R, k.G, k.B)
	}
	return template.HTML(fmt.Sprintf(`<p class="scale">%s <span style="background:linear-gradient(90deg%s)"></span> %s</p>`,
		from, stops, to))
}

func (t *timeline) waitCharts() figure {
	late, stalled := sum(t.late), sum(t.stalled)
	for i := range stalled {
		stalled[i] *= 1e3 // seconds per second, in all threads
	}
	lates := t.panel("late uses", "in each "+interval(t.ns), 0, area("var(--late)", late))
	lates.YMax = max(highest(late), 1)
	stalls := t.panel("time that threads were stalled", "ms per second", 0, area("var(--late)", stalled))
	stalls.YMax = max(highest(stalled), 1)
	return figure{"Late uses and stalls",
		"All ranks together. Stalls include first uses, which nobody can foresee.",
		inline(pairs("Late uses and stalls of all ranks over time", lates, stalls))}
}

// Colors of Okabe and Ito, which people with color blindness can tell apart.
var (
	running = color.NRGBA{0x00, 0x72, 0xb2, 255}
	parked  = color.NRGBA{0xe6, 0x9f, 0x00, 255}
)

func (t *timeline) helperPicture() figure {
	rows := make([][]float64, len(t.parked))
	for i, row := range t.parked {
		rows[i] = append([]float64(nil), row...)
		for k := range rows[i] {
			if !t.helped[i] {
				rows[i][k] = math.NaN()
			}
		}
	}
	c := func(v float64) color.NRGBA { return chart.Mix(running, parked, v) }
	f := t.picture("The helper of each rank over time: running or parked", rows, c)
	return figure{"The helper of each rank",
		"Parked: there was no idle core, so memory stayed as it was. Empty: no helper.",
		scale("running", "parked", c) + inline(f)}
}
