package chart

import (
	"bytes"
	"fmt"
	"html"
	"math"
	"strconv"
)

// canvas collects SVG elements.
type canvas struct{ bytes.Buffer }

// num formats a coordinate: a tenth of a pixel, without needless digits.
func num(v float64) string {
	return strconv.FormatFloat(math.Round(v*10)/10+0, 'f', -1, 64) // +0 turns -0 into 0
}

func (c *canvas) line(x1, y1, x2, y2 float64, class string) {
	fmt.Fprintf(c, "<line class=\"%s\" x1=\"%s\" y1=\"%s\" x2=\"%s\" y2=\"%s\"/>\n", class, num(x1), num(y1), num(x2), num(y2))
}

func (c *canvas) rect(x, y, w, h float64, attrs string) {
	fmt.Fprintf(c, "<rect x=\"%s\" y=\"%s\" width=\"%s\" height=\"%s\" %s/>\n", num(x), num(y), num(w), num(h), attrs)
}

func (c *canvas) dot(p point, color string) {
	fmt.Fprintf(c, "<circle cx=\"%s\" cy=\"%s\" r=\"3\" fill=\"%s\"/>\n", num(p.x), num(p.y), color)
}

// text draws s with the given class; anchor is start, middle or end.
func (c *canvas) text(x, y float64, class, anchor, s string) {
	fmt.Fprintf(c, "<text class=\"%s\" x=\"%s\" y=\"%s\" text-anchor=\"%s\">%s</text>\n", class, num(x), num(y), anchor, html.EscapeString(s))
}

// turned draws s upwards, centred on (x, y).
func (c *canvas) turned(x, y float64, class, s string) {
	fmt.Fprintf(c, "<text class=\"%s\" transform=\"translate(%s %s) rotate(-90)\" text-anchor=\"middle\">%s</text>\n", class, num(x), num(y), html.EscapeString(s))
}

// path draws a line through points that are already in pixels.
func (c *canvas) path(pts []point, attrs string) {
	if len(pts) == 0 {
		return
	}
	fmt.Fprintf(c, "<path %s d=\"", attrs)
	for i, p := range pts {
		switch {
		case i == 0:
			fmt.Fprintf(c, "M%s %s", num(p.x), num(p.y))
		case num(p.y) == num(pts[i-1].y):
			fmt.Fprintf(c, "H%s", num(p.x))
		case num(p.x) == num(pts[i-1].x):
			fmt.Fprintf(c, "V%s", num(p.y))
		default:
			fmt.Fprintf(c, "L%s %s", num(p.x), num(p.y))
		}
	}
	c.WriteString("\"/>\n")
}

type point struct{ x, y float64 }

// textWidth estimates the width in pixels of s at a font size.
func textWidth(s string, size float64) float64 { return float64(len([]rune(s))) * size * 0.56 }

const style = `<style>
text{font-family:Helvetica,Arial,"Liberation Sans",sans-serif;font-size:11px;fill:#333}
.title{font-size:15px;font-weight:bold;fill:#111}
.subtitle{fill:#555}
.panel{font-size:12px;font-weight:bold;fill:#111}
.axis{stroke:#333;stroke-width:1}
.grid{stroke:#e4e4e4;stroke-width:1}
</style>
`
