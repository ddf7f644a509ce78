package report

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"strings"

	"pinwheel/internal/chart"
	"pinwheel/internal/measure"
	"pinwheel/internal/outfile"
)

// Figure is a figure of a page, with its values as a table.
type Figure struct {
	File  string // without .svg, from the directory of the page
	Chart *chart.Figure
	Note  string               // a paragraph below the figure
	Head  string               // of the first column of the table
	Label func(float64) string // of its rows, for values of x; bars have their categories
}

// Curves returns a figure of throughput in MiB/s over sizes of files in bytes. Series without a color get one of the
// palette.
func Curves(file, title, subtitle, note string, ticks []float64, yMax float64, series ...chart.Series) Figure {
	for i := range series {
		series[i].Color = cmp.Or(series[i].Color, chart.Palette[i])
	}
	return Figure{
		File: file, Note: note, Head: "size", Label: func(x float64) string { return Size(int64(x)) },
		Chart: &chart.Figure{Title: title, Subtitle: subtitle, PanelHeight: 340, Panels: []chart.Panel{{
			XLabel: "size of the file (KiB)", YLabel: throughputLabel, XLog: true, XUnit: kib, XTicks: ticks, YMax: yMax,
			Series: series,
		}}},
	}
}

const throughputLabel = "throughput (MiB/s)"

// Bars returns a figure of throughput in MiB/s by the memory that a connection may have registered.
func Bars(file, title, subtitle, note string, yMax float64, categories []string, series ...chart.Series) Figure {
	return Figure{
		File: file, Note: note, Head: "pipes x pages: KiB",
		Chart: &chart.Figure{Title: title, Subtitle: subtitle, PanelHeight: 300, Panels: []chart.Panel{{
			YLabel: throughputLabel, XLabel: "pipes x pages: KiB in all", YMax: yMax, Categories: categories, Series: series,
		}}},
	}
}

// Page is a document of what must hold and of figures.
type Page struct {
	File   string // its name, from the directory that it is written to
	Head   string // its first paragraphs
	Claims []measure.Claim
	Tail   string // its last paragraphs
}

// Write writes the page and its figures into a directory. step is called after each figure.
func (p *Page) Write(dir string, figures []func() Figure, step func()) error {
	var page strings.Builder
	page.WriteString(p.Head + "\n## What must hold\n\n| finding | must be | is | holds |\n|---|---:|---:|---|\n")
	for _, c := range p.Claims {
		fmt.Fprintf(&page, "| %s | %s | %s | %s |\n", c.What, c.Want(), c.Got(), yes(c.Holds()))
	}
	for _, draw := range figures {
		f := draw()
		name := f.File + ".svg"
		fmt.Fprintf(&page, "\n## %s\n\n![%s](%s)\n\n%s\n", f.Chart.Title, f.Chart.Title, name, f.Note)
		for i := range f.Chart.Panels {
			page.WriteString("\n" + f.table(&f.Chart.Panels[i]))
		}
		if err := outfile.Write(filepath.Join(dir, name), f.Chart.WriteSVG); err != nil {
			return err
		}
		step()
	}
	page.WriteString(p.Tail)
	return outfile.WriteText(filepath.Join(dir, p.File), page.String())
}

// table has a row for each x, or each bar, and a column for each series.
func (f *Figure) table(p *chart.Panel) string {
	var b strings.Builder
	if p.Title != "" {
		fmt.Fprintf(&b, "%s:\n\n", p.Title)
	}
	fmt.Fprintf(&b, "| %s |", f.Head)
	for _, s := range p.Series {
		fmt.Fprintf(&b, " %s |", cmp.Or(s.Name, p.YLabel))
	}
	b.WriteString("\n|---:|" + strings.Repeat("---:|", len(p.Series)) + "\n")
	for i := range p.Series[0].Y {
		row := ""
		if len(p.Categories) > 0 {
			row = p.Categories[i]
		} else {
			row = f.Label(p.Series[0].X[i])
		}
		fmt.Fprintf(&b, "| %s |", row)
		for _, s := range p.Series {
			fmt.Fprintf(&b, " %s |", number(s.Y[i]))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// number prints three digits, or what is before the point.
func number(v float64) string {
	if v >= 100 || v == 0 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.*f", max(2-int(math.Floor(math.Log10(v))), 0), v)
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// Size prints a number of bytes in the largest unit of which it has one at least.
func Size(n int64) string {
	switch {
	case n < kib:
		return fmt.Sprintf("%d B", n)
	case n < mib:
		return fmt.Sprintf("%d KiB", n/kib)
	case n < gib:
		return fmt.Sprintf("%d MiB", n/mib)
	}
	return fmt.Sprintf("%d GiB", n/gib)
}
