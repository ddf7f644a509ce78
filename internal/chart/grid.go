package chart

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
)

// Grid is a picture of values over x: one row above the other, the first on top. It stays
// legible, and small, with hundreds of rows.
type Grid struct {
	Rows   []string    // names
	Values [][]float64 // of each row, from XMin to XMax of the panel; NaN leaves the place empty
	Color  func(v float64) color.NRGBA
}

// Cividis is a scale of colors from 0 to 1 whose lightness grows evenly, for any kind of color vision (Nunez,
// Anderton and Renslow, PLOS ONE 2018).
func Cividis(v float64) color.NRGBA {
	stops := []color.NRGBA{
		{0, 34, 78, 255}, {67, 78, 108, 255}, {125, 124, 120, 255}, {188, 175, 111, 255}, {254, 232, 56, 255},
	}
	v = min(max(v, 0), 1) * float64(len(stops)-1)
	i := min(int(v), len(stops)-2)
	return Mix(stops[i], stops[i+1], v-float64(i))
}

// Mix returns the color at a share of the way from a to b.
func Mix(a, b color.NRGBA, share float64) color.NRGBA {
	mix := func(x, y uint8) uint8 { return uint8(math.Round(float64(x) + share*(float64(y)-float64(x)))) }
	return color.NRGBA{mix(a.R, b.R), mix(a.G, b.G), mix(a.B, b.B), mix(a.A, b.A)}
}

const leastRowLabel = 14.0 // pixels between two names of rows

// grid draws the panel's Grid. A picture of one pixel for each value, which the reader's program scales, is
// a hundredth of the rectangles that would say the same.
func (p *Panel) grid(c *canvas, x, y, w, h float64) {
	g := p.Grid
	row := h / float64(max(len(g.Rows), 1))
	step := int(max(math.Ceil(leastRowLabel/row), 1))
	if step > 1 {
		step = int(roundStep(float64(step) * 1.42))
	}
	for i := 0; i < len(g.Rows); i += step {
		c.text(x-7, y+(float64(i)+0.5)*row+4, "", "end", g.Rows[i])
	}
	p.yLabel(c, x, y, h)
	c.rect(x, y, w, h, `class="empty"`)
	fmt.Fprintf(c, "<image x=\"%s\" y=\"%s\" width=\"%s\" height=\"%s\" preserveAspectRatio=\"none\""+
		" style=\"image-rendering:pixelated\" href=\"data:image/png;base64,%s\"/>\n",
		num(x), num(y), num(w), num(h), base64.StdEncoding.EncodeToString(g.png()))
	p.drawXTicks(c, x, y+h, p.xAxis(w))
	c.line(x, y, x, y+h, "axis")
	c.line(x, y+h, x+w, y+h, "axis")
	if p.XLabel != "" {
		c.text(x+w/2, y+h+33, "", "middle", p.XLabel)
	}
}

func (g *Grid) png() []byte {
	width := 0
	for _, row := range g.Values {
		width = max(width, len(row))
	}
	img := image.NewNRGBA(image.Rect(0, 0, max(width, 1), max(len(g.Values), 1)))
	for y, row := range g.Values {
		for x, v := range row {
			if !math.IsNaN(v) {
				img.SetNRGBA(x, y, g.Color(v))
			}
		}
	}
	var b bytes.Buffer
	_ = png.Encode(&b, img) // to memory, and of a size that PNG has
	return b.Bytes()
}
