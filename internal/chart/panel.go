package chart

import (
	"cmp"
	"fmt"
	"math"
)

// draw draws the panel so that its plot area begins at (x, y).
func (p *Panel) draw(c *canvas, x, y, w, h float64) {
	c.text(x, y-8, "panel", "start", p.Title)
	if p.Grid != nil {
		p.grid(c, x, y, w, h)
		return
	}
	ya := p.yAxis(h)
	yUnit := cmp.Or(p.YUnit, 1)
	for i, name := range p.Lanes {
		c.text(x-7, y+h-ya.at(float64(i)+0.5)+4, "", "end", name)
	}
	for _, t := range ya.ticks(int(max(h/pixelsPerY, 2)), yUnit) {
		if p.Lanes != nil {
			break
		}
		ty := y + h - ya.at(t.v)
		c.line(x, ty, x+w, ty, "grid")
		c.text(x-7, ty+4, "", "end", t.label)
	}
	p.yLabel(c, x, y, h)
	if len(p.Categories) > 0 {
		p.bars(c, x, y, w, h, ya)
	} else {
		p.lines(c, x, y, w, h, ya)
	}
	zero := y + h - ya.at(0)
	c.line(x, y, x, y+h, "axis")
	c.line(x, zero, x+w, zero, "axis")
	if p.XLabel != "" {
		c.text(x+w/2, y+h+33, "", "middle", p.XLabel)
	}
}

func (p *Panel) yLabel(c *canvas, x, y, h float64) {
	if p.YLabel != "" {
		c.turned(x-labelWidth+11, y+h/2, "", p.YLabel)
	}
}

func (p *Panel) yAxis(px float64) axis {
	unit := cmp.Or(p.YUnit, 1)
	lo, hi := bounds(false, func(s *Series) []float64 { return s.Y }, p.Series)
	lo, hi = min(lo, 0), max(hi, 0)
	if p.Stacked {
		for i := range p.Categories {
			hi = max(hi, p.stacked(i, len(p.Series)))
		}
	}
	if n := len(p.Lanes); n > 0 {
		return axis{hi: float64(n), px: px}
	}
	if p.YMax != 0 {
		hi = p.YMax
	}
	if hi <= lo {
		hi = lo + unit
	}
	if p.YMax == 0 {
		step := roundStep((hi-lo)/unit/max(px/pixelsPerY, 2)) * unit
		lo, hi = math.Floor(lo/step+1e-9)*step, math.Ceil(hi/step-1e-9)*step
	}
	return axis{lo: lo, hi: hi, px: px}
}

func (p *Panel) xAxis(px float64) axis {
	a := axis{log: p.XLog, px: px}
	lo, hi := p.XMin, p.XMax
	if lo == 0 && hi == 0 {
		lo, hi = bounds(p.XLog, func(s *Series) []float64 { return s.X }, p.Series)
	}
	a.lo, a.hi = a.scale(lo), a.scale(hi)
	return a
}

func (p *Panel) xTicks(xa axis, px float64) []tick {
	unit := cmp.Or(p.XUnit, 1)
	if p.XTicks == nil {
		return xa.ticks(int(max(px/pixelsPerX, 2)), unit)
	}
	var ts []tick
	for _, v := range p.XTicks {
		ts = append(ts, tick{v, formatTick(v/unit, 1)})
	}
	return ts
}

func (p *Panel) drawXTicks(c *canvas, x, bottom float64, xa axis) {
	for _, t := range p.xTicks(xa, xa.px) {
		tx := x + xa.at(t.v)
		c.line(tx, bottom, tx, bottom+tickLength, "axis")
		c.text(tx, bottom+17, "", "middle", t.label)
	}
}

func (p *Panel) lines(c *canvas, x, y, w, h float64, ya axis) {
	xa := p.xAxis(w)
	p.drawXTicks(c, x, y+h, xa)
	for i := range p.Series {
		s := &p.Series[i]
		pts := s.points(xa, ya, x, y+h)
		if s.Fill && len(pts) > 0 {
			area := append([]point{{pts[0].x, y + h}}, pts...)
			area = append(area, point{pts[len(pts)-1].x, y + h})
			c.path(area, fmt.Sprintf(`fill="%s" fill-opacity="0.12" stroke="none"`, s.Color))
		}
		c.path(pts, s.stroke())
		for i := range min(len(s.X), len(s.Y)) {
			if s.Dots && !math.IsNaN(s.Y[i]) {
				c.dot(point{x + xa.at(s.X[i]), y + h - ya.at(s.Y[i])}, s.Color)
			}
		}
	}
}

// points maps a series to pixels and drops points that don't show: those in
// the middle of a straight horizontal or vertical run.
func (s *Series) points(xa, ya axis, x, bottom float64) []point {
	round := func(v float64) float64 { return math.Round(v*10) / 10 }
	var pts []point
	add := func(p point) {
		if n := len(pts); n >= 2 && (pts[n-1].y == p.y && pts[n-2].y == p.y || pts[n-1].x == p.x && pts[n-2].x == p.x && between(pts[n-2].y, pts[n-1].y, p.y)) {
			pts[n-1] = p
			return
		}
		pts = append(pts, p)
	}
	for i := range min(len(s.X), len(s.Y)) {
		if math.IsNaN(s.Y[i]) {
			continue
		}
		p := point{round(x + xa.at(s.X[i])), round(bottom - ya.at(s.Y[i]))}
		if s.Step && len(pts) > 0 {
			add(point{p.x, pts[len(pts)-1].y})
		}
		add(p)
	}
	return pts
}

func between(a, b, c float64) bool { return a <= b && b <= c || a >= b && b >= c }

// stacked is the height of the first n bars of a category.
func (p *Panel) stacked(category, n int) (sum float64) {
	for _, s := range p.Series[:n] {
		if category < len(s.Y) && !math.IsNaN(s.Y[category]) {
			sum += max(s.Y[category], 0)
		}
	}
	return sum
}

func (p *Panel) bars(c *canvas, x, y, w, h float64, ya axis) {
	slot := w / float64(len(p.Categories))
	bar := slot * 0.8
	if !p.Stacked {
		bar /= float64(max(len(p.Series), 1))
	}
	zero := ya.at(0)
	for i, name := range p.Categories {
		left := x + float64(i)*slot
		c.text(left+slot/2, y+h+17, "", "middle", name)
		for j, s := range p.Series {
			if i >= len(s.Y) || math.IsNaN(s.Y[i]) {
				continue
			}
			if p.Stacked {
				from, to := ya.at(p.stacked(i, j)), ya.at(p.stacked(i, j+1))
				c.rect(left+slot*0.1, y+h-to, bar, to-from, fmt.Sprintf("fill=%q", s.Color))
				continue
			}
			top := ya.at(s.Y[i])
			c.rect(left+slot*0.1+float64(j)*bar, y+h-max(top, zero), bar*0.92, math.Abs(top-zero), fmt.Sprintf("fill=%q", s.Color))
		}
	}
}
