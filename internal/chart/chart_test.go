package chart

import (
	"bytes"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"fmt"
	"image/color"
	"image/png"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
)

func sample() *Figure {
	line := func(name, color string, ys ...float64) Series {
		s := Series{Name: name, Color: color, Y: ys, Step: true}
		for i := range ys {
			s.X = append(s.X, float64(i)*1e9)
		}
		return s
	}
	return &Figure{Title: "Pinned <memory>", Subtitle: "a & b", Columns: 2, Panels: []Panel{
		{Title: "one", XLabel: "time (s)", YLabel: "MiB", XUnit: 1e9, YUnit: 1 << 20, Series: []Series{line("paper", "#d55e00", 0, 5<<20, 1<<20, 1<<20, 3<<20), line("pinwheel", "#0072b2", 0, 1<<20, 0, 1<<20, 0)}},
		{Title: "two", XLog: true, YMax: 1, Series: []Series{{Name: "cdf", Color: "#000", X: []float64{1e-4, 1e-2, 1}, Y: []float64{0.1, 0.5, 1}, Dash: "4 2", Fill: true}}},
		{Title: "three", Categories: []string{"ft", "lu"}, Series: []Series{{Name: "x", Color: "#111", Y: []float64{0.5, math.NaN()}}, {Name: "y", Color: "#222", Y: []float64{0.25, -0.1}}}},
	}}
}

func draw(t *testing.T, f *Figure) string {
	t.Helper()
	var b bytes.Buffer
	if err := f.WriteSVG(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestSameFigureGivesTheSameBytesOfWellFormedXML(t *testing.T) {
	svg := draw(t, sample())
	if svg != draw(t, sample()) {
		t.Fatal("two drawings of one figure differ")
	}
	dec := xml.NewDecoder(strings.NewReader(svg))
	for {
		if _, err := dec.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"Pinned &lt;memory&gt;", "a &amp; b", ">pinwheel<", ">lu<"} {
		if !strings.Contains(svg, want) {
			t.Errorf("drawing lacks %q", want)
		}
	}
	for _, bad := range []string{"NaN", "Inf", "<script", "href"} {
		if strings.Contains(svg, bad) {
			t.Errorf("drawing contains %q", bad)
		}
	}
}

func TestDegenerateDataIsDrawnWithoutNonsense(t *testing.T) {
	for name, p := range map[string]Panel{
		"no series":   {},
		"no points":   {Series: []Series{{Name: "x"}}},
		"one point":   {Series: []Series{{X: []float64{5}, Y: []float64{0}}}},
		"all zero":    {Series: []Series{{X: []float64{1, 2}, Y: []float64{0, 0}}}},
		"log of zero": {XLog: true, Series: []Series{{X: []float64{0, 0}, Y: []float64{1, 2}}}},
		"infinite":    {Series: []Series{{X: []float64{1, 2}, Y: []float64{1, math.Inf(1)}}}},
	} {
		if svg := draw(t, &Figure{Panels: []Panel{p}}); strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") {
			t.Errorf("%s: %s", name, svg)
		}
	}
}

func TestInlineFigureLeavesItsLookToThePage(t *testing.T) {
	f := sample()
	f.Panels = append(f.Panels, Panel{XMax: 1e9, XUnit: 1e9, XLabel: "time (s)", Grid: &Grid{
		Rows: []string{"a", "b"}, Values: [][]float64{{0, 1, math.NaN()}, {0.5}}, Color: Cividis,
	}})
	svg := f.Inline()
	if svg != f.Inline() || strings.Contains(svg, "<style") || strings.Contains(svg, "#fff") || !strings.Contains(svg, `aria-label="Pinned &lt;memory&gt;"`) {
		t.Error(svg)
	}
	if err := xml.Unmarshal([]byte(svg), new(struct{})); err != nil {
		t.Error(err)
	}
	_, picture, _ := strings.Cut(svg, "data:image/png;base64,")
	picture, _, _ = strings.Cut(picture, `"`)
	img, err := png.Decode(base64.NewDecoder(base64.StdEncoding, strings.NewReader(picture)))
	if err != nil {
		t.Fatal(err)
	}
	if at := func(x, y int) color.Color { return img.At(x, y) }; img.Bounds().Dx() != 3 || at(0, 0) != Cividis(0) || at(1, 0) != Cividis(1) ||
		at(2, 0) != (color.NRGBA{}) || at(0, 1) != Cividis(0.5) || at(1, 1) != (color.NRGBA{}) {
		t.Errorf("the picture is wrong: %v", img)
	}
}

func TestTicksAreRoundAndCoverTheAxis(t *testing.T) {
	labels := func(ts []tick) (s []string) {
		for _, k := range ts {
			s = append(s, k.label)
		}
		return s
	}
	if got := labels(axis{lo: 0, hi: 1, px: 300}.ticks(5, 1)); !slices.Equal(got, []string{"0.0", "0.2", "0.4", "0.6", "0.8", "1.0"}) {
		t.Errorf("0..1: %v", got)
	}
	if got := labels(axis{lo: 0, hi: 7.3e9, px: 300}.ticks(4, 1e9)); !slices.Equal(got, []string{"0", "2", "4", "6"}) {
		t.Errorf("0..7.3 s: %v", got)
	}
	for _, k := range (axis{lo: 0, hi: 6 << 20, px: 300}).ticks(4, 1<<20) {
		if k.label == "4" && k.v != 4<<20 {
			t.Errorf("4 MiB is marked at %v bytes", k.v)
		}
	}
	if got := labels(axis{lo: -3, hi: 0, log: true, px: 300}.ticks(4, 1)); !slices.Equal(got, []string{"0.001", "0.01", "0.1", "1"}) {
		t.Errorf("log: %v", got)
	}
}

func TestStepsKeepTheirShapeWhenPointsAreDropped(t *testing.T) {
	s := Series{Step: true, X: []float64{0, 1, 2, 3, 4}, Y: []float64{1, 1, 1, 0, 1}}
	got := s.points(axis{hi: 4, px: 40}, axis{hi: 1, px: 10}, 0, 10)
	want := []point{{0, 0}, {30, 0}, {30, 10}, {40, 10}, {40, 0}}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestStackedBarsStandOnEachOther(t *testing.T) {
	p := Panel{Stacked: true, Categories: []string{"a"}, Series: []Series{{Color: "#a11", Y: []float64{30}}, {Color: "#a22", Y: []float64{-1}}, {Color: "#a33", Y: []float64{20}}}}
	if a := p.yAxis(100); a.hi < 50 {
		t.Errorf("the axis ends at %g, the bars at 50", a.hi)
	}
	if got := p.stacked(0, 3); got != 50 {
		t.Errorf("three bars are %g high", got)
	}
	svg := draw(t, &Figure{Panels: []Panel{p}})
	var y, h [2]float64
	for i, color := range []string{"#a11", "#a33"} {
		_, err := fmt.Sscanf(svg[strings.LastIndex(svg[:strings.Index(svg, color)], "y="):], `y="%f" width="%f" height="%f"`, &y[i], new(float64), &h[i])
		if err != nil {
			t.Fatal(err)
		}
	}
	if math.Abs(y[1]+h[1]-y[0]) > 0.11 || math.Abs(h[1]*3-h[0]*2) > 0.5 {
		t.Errorf("bars at %v, %v high", y, h)
	}
}

func TestLanesHaveNamesInsteadOfValues(t *testing.T) {
	svg := draw(t, &Figure{Panels: []Panel{{Lanes: []string{"below", "above"}, Series: []Series{{Color: "#111", X: []float64{0, 1}, Y: []float64{0.5, 1.5}}}}}})
	if !strings.Contains(svg, ">below<") || !strings.Contains(svg, ">above<") || strings.Contains(svg, ">1.0<") && strings.Contains(svg, ">2.0<") {
		t.Error(svg)
	}
}

func TestDotsMarkEachPointAndTheLegend(t *testing.T) {
	svg := draw(t, &Figure{Panels: []Panel{{XLog: true, XMin: 0.01, XMax: 1, Series: []Series{
		{Name: "curve", Color: "#111", Dots: true, X: []float64{0.01, 0.1, 1}, Y: []float64{1, 1, 1}},
		{Name: "alone", Color: "#222", Dots: true, X: []float64{0}, Y: []float64{0.5}},
	}}}})
	for color, n := range map[string][2]int{"#111": {3 + 1, 1 + 1}, "#222": {1 + 1, 1}} {
		dots, lines := strings.Count(svg, `fill="`+color), strings.Count(svg, `stroke="`+color)
		if dots != n[0] || lines != n[1] {
			t.Errorf("%s: %d dots and %d lines, want %v", color, dots, lines, n)
		}
	}
}
