package chart

import (
	"fmt"
	"io"
	"math"
)

// Series is one line of a panel, or one group of bars.
type Series struct {
	Name  string
	Color string // as SVG writes it: "#0072b2"
	Dash  string // stroke-dasharray, empty for a solid line
	Fill  bool   // shade the area below the line
	Step  bool   // a value holds until the next point
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
	Series         []Series // of bars, Y has one value per category
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
	labelWidth   = 58.0 // left of the y axis
	labelHeight  = 40.0 // below the x axis
	panelTop     = 24.0 // above the plot: its title
	panelRight   = 14.0
	tickLength   = 4.0
	pixelsPerX   = 75.0
	pixelsPerY   = 42.0
	legendSample = 24.0
)

// WriteSVG draws the figure.
func (f *Figure) WriteSVG(w io.Writer) error {
	cols := max(f.Columns, 1)
	pw, ph := f.PanelWidth, f.PanelHeight
	if pw == 0 {
		pw = max(720/float64(cols), 300)
	}
	if ph == 0 {
		ph = 260
	}
	rows := (len(f.Panels) + cols - 1) / cols
	width, height := 2*margin+float64(cols)*pw, margin+headHeight+float64(rows)*ph
	var c canvas
	fmt.Fprintf(&c, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%s\" height=\"%s\" viewBox=\"0 0 %s %s\" role=\"img\">\n", num(width), num(height), num(width), num(height))
	c.WriteString(style)
	c.rect(0, 0, width, height, `fill="#fff"`)
	c.text(margin, margin+12, "title", "start", f.Title)
	c.text(margin, margin+29, "subtitle", "start", f.Subtitle)
	if len(f.Panels) > 0 {
		f.legend(&c, margin, margin+48)
	}
	for i := range f.Panels {
		x, y := margin+float64(i%cols)*pw, margin+headHeight+float64(i/cols)*ph
		f.Panels[i].draw(&c, x+labelWidth, y+panelTop, pw-labelWidth-panelRight, ph-panelTop-labelHeight)
	}
	c.WriteString("</svg>\n")
	_, err := w.Write(c.Bytes())
	return err
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
			c.path([]point{{x, y - 4}, {x + legendSample, y - 4}}, s.stroke())
		}
		c.text(x+legendSample+5, y, "", "start", s.Name)
		x += legendSample + 22 + textWidth(s.Name, 11)
	}
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
