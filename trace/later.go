package trace

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

// match is what a request turned out to be when it ended. A receive from any
// source, or with any tag, has those of the message that it took; an operation
// that was cancelled has NoPeer.
type match struct{ peer, tag int32 }

// LeftOut counts calls of one kind that the records of a rank lack.
type LeftOut struct {
	What  string // in the plural, for people
	Calls uint64
}

func (t *tables) addMatch(req uint32, m match) error {
	if len(t.matches) >= maxMatches {
		return fmt.Errorf("%w: what %d requests were matched with", ErrLimit, len(t.matches))
	}
	if req == 0 || m.peer < Elsewhere || int(m.peer) >= t.ranks {
		return invalidf("request %d was matched with peer %d in a run of %d ranks", req, m.peer, t.ranks)
	}
	if t.matches == nil {
		t.matches = map[uint32]match{}
	}
	t.matches[req] = m
	return nil
}

func (t *tables) addLeftOut(l LeftOut) error {
	if len(t.leftOut) >= maxLeftOut || len(l.What) > maxStringBytes {
		return fmt.Errorf("%w: %d kinds of calls left out", ErrLimit, len(t.leftOut))
	}
	t.leftOut = append(t.leftOut, l)
	return nil
}

// settle puts what became known later into a record.
func (t *tables) settle(r *Record) {
	m, ok := t.matches[r.Req]
	switch {
	case !ok || r.Op == OpWait || r.Op == OpFree:
	case m.peer == NoPeer:
		r.Peer = NoPeer
	case r.Dir == DirWrite:
		r.Peer, r.Tag = m.peer, m.tag
	}
}

// Matched says of a request that has ended which message a receive from any
// source or with any tag took. Readers find it in the record that started the
// request. Peer is NoPeer if the operation was cancelled before any message was
// sent or taken. ErrLimit says that it is not kept; nothing else suffers from that.
func (rw *RankWriter) Matched(req uint32, peer, tag int32) error {
	if err := rw.tables.addMatch(req, match{peer, tag}); err != nil {
		return rw.wrap(err)
	}
	rw.defs = binary.AppendUvarint(append(rw.defs, defMatch), uint64(req))
	rw.defs = binary.AppendVarint(binary.AppendVarint(rw.defs, int64(peer)), int64(tag))
	rw.flushDefsIfLarge()
	return rw.w.err
}

// LeaveOut says that calls of this rank are not in its records: what they are,
// and how many. It is called once for each kind, at the end.
func (rw *RankWriter) LeaveOut(what string, calls uint64) error {
	if err := rw.tables.addLeftOut(LeftOut{what, calls}); err != nil {
		return rw.wrap(err)
	}
	rw.defs = binary.AppendUvarint(append(rw.defs, defLeftOut), calls)
	rw.defs = append(binary.AppendUvarint(rw.defs, uint64(len(what))), what...)
	return rw.w.err
}

// LeftOut says what the records of all ranks lack, for people: "2 calls that failed, 1 other"; ""
// if they are complete.
func (f *File) LeftOut() (string, error) {
	var kinds []string
	sum := map[string]uint64{}
	for _, rank := range f.Ranks() {
		rr, err := f.Rank(rank)
		if err != nil {
			return "", err
		}
		for _, l := range rr.tables.leftOut {
			if sum[l.What] += l.Calls; !slices.Contains(kinds, l.What) {
				kinds = append(kinds, l.What)
			}
		}
	}
	for i, what := range kinds {
		kinds[i] = fmt.Sprintf("%d %s", sum[what], what)
	}
	return strings.Join(kinds, ", "), nil
}

// LeftOut returns what the records of this rank lack; nil if they are complete.
// What waits for such calls on other ranks finds no counterpart.
func (rr *RankReader) LeftOut() []LeftOut { return slices.Clone(rr.tables.leftOut) }
