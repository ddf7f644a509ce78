package report

import (
	"pinwheel/replay"
	"pinwheel/replay/chart"
)

// Colours of Okabe and Ito, which people with colour blindness can tell apart.
const (
	black     = "#000000"
	grey      = "#777777"
	orange    = "#e69f00"
	sky       = "#56b4e9"
	green     = "#009e73"
	blue      = "#0072b2"
	vermilion = "#d55e00"
	purple    = "#cc79a7"
)

// look gives a policy its colour and dash in every figure.
func look(policy string) chart.Series {
	s := chart.Series{Name: policy}
	switch policy {
	case replay.LeavePinned:
		s.Color, s.Dash = grey, "6 3"
	case replay.Paper:
		s.Color = vermilion
	case replay.Pinwheel:
		s.Color = blue
	case replay.Oracle:
		s.Color, s.Dash = green, "2 2"
	case replay.Periodicity:
		s.Color, s.Dash = purple, "5 2"
	case replay.Last:
		s.Color, s.Dash = orange, "1 2"
	default:
		s.Color = black
	}
	return s
}

// palette tells up to eight lines apart.
var palette = []string{vermilion, blue, green, orange, purple, sky, black, grey}
