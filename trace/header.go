package trace

import (
	"encoding/binary"
	"fmt"
)

// Clock names what the wall-clock times of a trace are.
type Clock string

// ClockMonotonic is CLOCK_MONOTONIC since the first barrier; see clock_gettime(2).
const ClockMonotonic Clock = "CLOCK_MONOTONIC"

// Header describes a run.
type Header struct {
	Program        string // name and arguments, or the benchmark: "ft.B.4"
	Ranks          int    // of the run; the file may hold only some of them
	Clock          Clock  // empty on writing means ClockMonotonic
	ThresholdBytes uint64 // shorter buffers were not recorded
	Source         string // machine, recorder or files that this came from, for people
}

// The header frame is: ranks, threshold, then program, clock, source as
// length and bytes. A later minor addition appends; a reader ignores what
// follows the fields that it knows.

func (h *Header) encode() ([]byte, error) {
	if h.Ranks < 1 || h.Ranks > MaxRanks {
		return nil, invalidf("run of %d ranks (1 to %d are possible)", h.Ranks, MaxRanks)
	}
	b := binary.AppendUvarint(nil, uint64(h.Ranks))
	b = binary.AppendUvarint(b, h.ThresholdBytes)
	for _, s := range []string{h.Program, string(h.Clock), h.Source} {
		if len(s) > maxStringBytes {
			return nil, fmt.Errorf("%w: header text of %d bytes (%d are possible)", ErrLimit, len(s), maxStringBytes)
		}
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	return b, nil
}

func decodeHeader(raw []byte) (h Header, err error) {
	in := cursor{b: raw}
	ranks := in.uvarint()
	h.ThresholdBytes = in.uvarint()
	h.Program, h.Clock, h.Source = in.text(), Clock(in.text()), in.text()
	if in.bad || ranks < 1 || ranks > MaxRanks {
		return h, corruptf("header")
	}
	h.Ranks = int(ranks)
	return h, nil
}
