package main

import (
	"math"

	"pinwheel/comm/files/report"
	"pinwheel/internal/measure"
)

// enoughBytes of buffer are to give nearly all that the device does.
const enoughBytes = 256 * kib

// deviceClaims compare transfers with what the device does without them: with the most that it gives, and with its own
// messages that have as much under way. These show what each message costs there.
func (s *state) deviceClaims() []measure.Claim {
	own := s.share(s.ownMessages, s.deviceMost)
	claims := []measure.Claim{
		s.ofTheDevice("pipelined", buffers), s.ofTheDevice("sendfile", sendfileBufs),
		atEnough("the device's own messages to the most that it gives", own),
	}
	for _, each := range [][2]string{{"pipelined", buffers}, {"sendfile", sendfileBufs}} {
		bars := func(round int) float64 { return s.bestBar(each[1], enoughBytes, round) }
		claims = append(claims, atEnough(each[0]+" to the device's own messages of as much buffer", s.share(bars, s.ownMessages)))
	}
	return claims
}

// atEnough claims that a throughput with enoughBytes is nearly another one.
func atEnough(what string, shares []float64) measure.Claim {
	if len(shares) == 0 {
		return atLeast(what, 0.95, measure.Estimate{}, "", errNotMeasured)
	}
	return atLeast(what, 0.95, measure.Estimated(shares), report.Size(enoughBytes), nil)
}

// ofTheDevice is the share of the device's throughput that the worst of the sizes of buffer has, from enoughBytes on,
// each with its best number of pipes.
func (s *state) ofTheDevice(what, figure string) measure.Claim {
	worst, at, err := measure.Estimate{Median: math.Inf(1)}, 0, errNotMeasured
	for _, each := range pipesAndPages {
		bytes := bufferBytes(each)
		if bytes < enoughBytes {
			continue
		}
		shares := s.share(func(round int) float64 { return s.bestBar(figure, bytes, round) }, s.deviceMost)
		if len(shares) == 0 {
			continue
		}
		err = nil
		if e := measure.Estimated(shares); e.Median < worst.Median || e.Median == worst.Median && bytes < at {
			worst, at = e, bytes
		}
	}
	return atLeast(what+" to the most that the device gives, from 256 KiB of buffer on", 0.95, worst, report.Size(int64(at)), err)
}

// share is one throughput divided by another one, in each round in which both were measured.
func (s *state) share(of, to func(round int) float64) (shares []float64) {
	for round := range s.rounds() {
		if a, b := of(round), to(round); a > 0 && b > 0 {
			shares = append(shares, a/b)
		}
	}
	return shares
}

func bufferBytes(pipesAndPages [2]int) int { return pipesAndPages[0] * pipesAndPages[1] * 4 * kib }

// bestBar is the largest throughput of those with so many bytes of buffer, in MiB/s; 0 if none was measured.
func (s *state) bestBar(figure string, bytes, round int) (best float64) {
	for i, each := range pipesAndPages {
		if p := s.point(figure, int64(i), round); p != nil && bufferBytes(each) == bytes {
			best = max(best, float64(bufferSize)/mib/p.Seconds)
		}
	}
	return best
}

// deviceRowNames are those of the rows that look for the most that the device can do.
func deviceRowNames() (names []string) {
	for _, r := range deviceRows() {
		names = append(names, r.name)
	}
	return names
}

// deviceMost is the largest throughput of the device in a round, in MiB/s; 0 if it was not measured.
func (s *state) deviceMost(round int) float64 { return s.fastest(deviceRowNames(), round) }

// ownMessages is the largest throughput of the device with enoughBytes under way, out of memory that stays registered,
// without package files.
func (s *state) ownMessages(round int) float64 {
	var rows []string
	for _, depth := range ownDepths {
		rows = append(rows, ownRow(depth))
	}
	return s.fastest(rows, round)
}

// fastest is the largest throughput of some rows in a round, in MiB/s; 0 if none was measured.
func (s *state) fastest(rows []string, round int) (most float64) {
	for _, r := range rows {
		if l := s.find(r, round); l != nil && len(l.Points) > 0 {
			most = max(most, l.Points[0].mibPerSec())
		}
	}
	return most
}
