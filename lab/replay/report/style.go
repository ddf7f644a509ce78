package report

import (
	"pinwheel/internal/chart"
	"pinwheel/lab/replay"
)

// look gives a policy its colour and dash in every figure.
func look(policy string) chart.Series {
	s := chart.Series{Name: policy}
	switch policy {
	case replay.LeavePinned:
		s.Color, s.Dash = chart.Grey, "6 3"
	case replay.Paper:
		s.Color = chart.Vermilion
	case replay.PaperStrict:
		s.Color, s.Dash = chart.Vermilion, "3 3"
	case replay.Pinwheel:
		s.Color = chart.Blue
	case replay.Oracle:
		s.Color, s.Dash = chart.Green, "2 2"
	case replay.Periodicity:
		s.Color, s.Dash = chart.Purple, "5 2"
	case replay.Last:
		s.Color, s.Dash = chart.Orange, "1 2"
	default:
		s.Color = chart.Black
	}
	return s
}
