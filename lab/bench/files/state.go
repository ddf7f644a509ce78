package main

import (
	"errors"
	"slices"

	"pinwheel/internal/measure"
	"pinwheel/lab/kit"
)

// line is a row of a round, as the file of runs has it after its head.
type line struct {
	Row    string  `json:"row"`
	Round  int     `json:"round"` // from 0
	Load   float64 `json:"load"`  // measure.Load before
	Points []point `json:"points,omitempty"`
	Failed string  `json:"failed,omitempty"`
}

// point is one measurement. What a row does not measure is 0.
type point struct {
	X       int64   `json:"x"`               // what the row goes by: bytes, most often
	Label   string  `json:"label,omitempty"` // of a bar
	N       int     `json:"n"`               // transfers that were measured
	Seconds float64 `json:"s"`               // of one transfer
	CPU     float64 `json:"cpu_s,omitempty"` // of one transfer: of the sender, or of both ends of a copy
	// Stages is how long the steps of a transfer took, together: more than Seconds if they overlap.
	Stages     float64 `json:"stages_s,omitempty"`
	Deregister float64 `json:"deregister_s,omitempty"`

	Registrations int64 `json:"registrations,omitempty"` // on the path of all transfers
	Hits          int64 `json:"hits,omitempty"`
	Refused       int64 `json:"refused,omitempty"`
	CopiedBytes   int64 `json:"copied_bytes,omitempty"`
	PeakBytes     int64 `json:"peak_bytes,omitempty"` // most that was registered at a time
	LeftBytes     int64 `json:"left_bytes,omitempty"` // registered after the last transfer
	// MostBytes is the chunk times the depth of the shape: PeakBytes may not be more but for the ends of pages.
	MostBytes int64 `json:"most_bytes,omitempty"`

	Packets int64   `json:"packets,omitempty"` // that an RDMA device has sent
	Way     string  `json:"way,omitempty"`     // of the bytes of a client
	Clients []int64 `json:"clients,omitempty"` // bytes that each got
	Errors  int64   `json:"errors,omitempty"`
}

func (p *point) mibPerSec() float64 { return float64(p.X) / (1 << 20) / p.Seconds }

// state has what was measured so far.
type state struct {
	kit.Log[kit.Head, line]
}

// find returns a row of a round that has not failed, or nil.
func (s *state) find(row string, round int) *line {
	for i := range s.Lines {
		if l := &s.Lines[i]; l.Row == row && l.Round == round && l.Failed == "" {
			return l
		}
	}
	return nil
}

// rounds is how many there are at least in part.
func (s *state) rounds() (n int) {
	for _, l := range s.Lines {
		n = max(n, l.Round+1)
	}
	return n
}

// points are those of a row at x, by round; missing ones are left out.
func (s *state) points(row string, x int64) (all []point) {
	for round := range s.rounds() {
		if p := s.point(row, x, round); p != nil {
			all = append(all, *p)
		}
	}
	return all
}

func (s *state) point(row string, x int64, round int) *point {
	l := s.find(row, round)
	if l == nil {
		return nil
	}
	if i := slices.IndexFunc(l.Points, func(p point) bool { return p.X == x }); i >= 0 {
		return &l.Points[i]
	}
	return nil
}

// errNotMeasured says that this machine lacks what a row needs, or that no round has it.
var errNotMeasured = errors.New(measure.NotMeasured)

// estimate is the median over the rounds of what of makes of the points of some rows at x. Rounds that lack one of them
// don't count.
func (s *state) estimate(x int64, of func([]*point) float64, rows ...string) (measure.Estimate, error) {
	var values []float64
rounds:
	for round := range s.rounds() {
		points := make([]*point, len(rows))
		for i, r := range rows {
			if points[i] = s.point(r, x, round); points[i] == nil {
				continue rounds
			}
		}
		values = append(values, of(points))
	}
	if len(values) == 0 {
		return measure.Estimate{}, errNotMeasured
	}
	return measure.Estimated(values), nil
}

// sizesOf are the x of a row, in their order.
func (s *state) sizesOf(row string) (xs []int64) {
	for _, l := range s.Lines {
		if l.Row != row {
			continue
		}
		for _, p := range l.Points {
			if !slices.Contains(xs, p.X) {
				xs = append(xs, p.X)
			}
		}
	}
	slices.Sort(xs)
	return xs
}
