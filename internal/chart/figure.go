package chart

import (
	"fmt"
	"html"
	"io"
	"math"
	"slices"
)

// Series is one line of a panel, or one group of bars.
type Series struct {
	Name  string
	Color string // as SVG writes it: "#0072b2"
	Dash  string // stroke-dasharray, empty for a solid line
	Fill  bool   // shade the area below the line
	Step  bool   // a value holds until the next point
	Dots  bool   // mark each point; one by itself has no line
	X, Y  []float64
}

// Panel is one coordinate system: lines, or bars if Categories are set.
type Panel struct {
	Title          string
	XLabel, YLabel string
	XUnit, YUnit   float64 // divide the labels of ticks; 0 means 1
	XLog           bool
	XMin, XMax     float64   // both 0: as the data
	XTicks         []float64 // where to label; nil: at round values
	YMax           float64   // 0: as the data; axes begin at 0 or at the least negative round value
	Categories     []string
	Stacked        bool     // bars of one category stand on each other; none is negative
	Series         []Series // of bars, Y has one value per category
	Lanes          []string // instead of values of y: names of the stretches from 0 to 1, 1 to 2 and so on
	Grid           *Grid    // instead of Series
}

// Figure is a grid of panels with one legend: the series of the first panel.
type Figure struct {
	Title, Subtitle string
	Columns         int     // panels beside each other; 0 means 1
	PanelWidth      float64 // pixels; 0 means 720 divided by Columns, at least 300
	PanelHeight     float64 // pixels; 0 means 260
	Panels          []Panel
}

const (
	margin       = 12.0
	headHeight   = 62.0 // title, subtitle, legend
	legendHeight = 22.0
	labelWidth   = 58.0 // left of the y axis
	labelHeight  = 40.0 // below the x axis
	panelTop     = 24.0 // above the plot: its title
	panelRight   = 14.0
	tickLength   = 4.0
	pixelsPerX   = 75.0
	pixelsPerY   = 42.0
	legendSample = 24.0
)

// WriteSVG draws the figure as a file of its own.
func (f *Figure) WriteSVG(w io.Writer) error {
	var c canvas
	width, height := f.size(headHeight)
	f.open(&c, width, height, "")
	c.WriteString(style)
	c.rect(0, 0, width, height, `fill="#fff"`)
	c.text(margin, margin+12, "title", "start", f.Title)
	c.text(margin, margin+29, "subtitle", "start", f.Subtitle)
	f.body(&c, headHeight)
	_, err := w.Write(c.Bytes())
	return err
}

// Inline draws the figure as a part of a page of HTML, of the class "chart". The page has a title
// of its own, and gives texts and lines their look, by the classes "panel", "axis", "grid" and
// "empty" in the chart. Colors may be the page's, as in "var(--name)". Only what reads the page
// aloud gets the Title.
func (f *Figure) Inline() string {
	var c canvas
	head := 0.0
	if f.hasLegend() {
		head = legendHeight
	}
	width, height := f.size(head)
	f.open(&c, width, height, fmt.Sprintf(` class="chart" aria-label="%s"`, html.EscapeString(f.Title)))
	f.body(&c, head)
	return c.String()
}

func (f *Figure) columns() int { return max(f.Columns, 1) }

// panelSize returns the size of each panel.
func (f *Figure) panelSize() (width, height float64) {
	width, height = f.PanelWidth, f.PanelHeight
	if width == 0 {
		width = max(720/float64(f.columns()), 300)
	}
	if height == 0 {
		height = 260
	}
	return width, height
}

func (f *Figure) size(head float64) (width, height float64) {
	pw, ph := f.panelSize()
	rows := (len(f.Panels) + f.columns() - 1) / f.columns()
	return 2*margin + max(float64(f.columns())*pw, f.legendWidth()), margin + head + float64(rows)*ph
}

func (f *Figure) open(c *canvas, width, height float64, attributes string) {
	fmt.Fprintf(c, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%s\" height=\"%s\" viewBox=\"0 0 %s %s\""+
		" role=\"img\"%s>\n", num(width), num(height), num(width), num(height), attributes)
}

// body draws legend and panels below the head, and ends the drawing.
func (f *Figure) body(c *canvas, head float64) {
	if len(f.Panels) > 0 {
		f.legend(c, margin, margin+head-14)
	}
	pw, ph := f.panelSize()
	for i := range f.Panels {
		x, y := margin+float64(i%f.columns())*pw, margin+head+float64(i/f.columns())*ph
		f.Panels[i].draw(c, x+labelWidth, y+panelTop, pw-labelWidth-panelRight, ph-panelTop-labelHeight)
	}
	c.WriteString("</svg>\n")
}

func (f *Figure) hasLegend() bool {
	return len(f.Panels) > 0 && slices.ContainsFunc(f.Panels[0].Series, func(s Series) bool { return s.Name != "" })
}

func (f *Figure) legend(c *canvas, x, y float64) {
	bars := len(f.Panels[0].Categories) > 0
	for _, s := range f.Panels[0].Series {
		if s.Name == "" {
			continue
		}
		if bars {
			c.rect(x+8, y-9, 10, 10, fmt.Sprintf("fill=%q", s.Color))
		} else {
			s.sample(c, x, y-4)
		}
		c.text(x+legendSample+5, y, "", "start", s.Name)
		x += s.legendWidth()
	}
}

// sample draws what the lines of a series look like.
func (s *Series) sample(c *canvas, x, y float64) {
	if !s.Dots || len(s.X) > 1 {
		c.path([]point{{x, y}, {x + legendSample, y}}, s.stroke())
	}
	if s.Dots {
		c.dot(point{x + legendSample/2, y}, s.Color)
	}
}

func (f *Figure) legendWidth() (width float64) {
	if f.hasLegend() {
		for _, s := range f.Panels[0].Series {
			width += s.legendWidth()
		}
	}
	return width
}

func (s *Series) legendWidth() float64 {
	if s.Name == "" {
		return 0
	}
	return legendSample + 22 + textWidth(s.Name, 11)
}

func (s *Series) stroke() string {
	attrs := fmt.Sprintf(`fill="none" stroke="%s" stroke-width="1.6" stroke-linejoin="round"`, s.Color)
	if s.Dash != "" {
		attrs += fmt.Sprintf(` stroke-dasharray="%s"`, s.Dash)
	}
	return attrs
}

// bounds returns the least and greatest of the values that lie on the axis.
func bounds(log bool, values func(*Series) []float64, series []Series) (lo, hi float64) {
	lo, hi = math.Inf(1), math.Inf(-1)
	for i := range series {
		for _, v := range values(&series[i]) {
			if math.IsNaN(v) || math.IsInf(v, 0) || log && v <= 0 {
				continue
			}
			lo, hi = min(lo, v), max(hi, v)
		}
	}
	if lo > hi {
		return 0, 1
	}
	return lo, hi
}
