package trace

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// Unseen is something that the records of a rank don't show, though nothing waits for it as for the calls of LeftOut. A
// replay does without it, and so foretells less.
type Unseen struct {
	What  string // in the plural, for people
	Times uint64 // how often; 0 if that is not known
	Bytes uint64 // of memory; 0 if that is not known
}

func (t *tables) addUnseen(u Unseen) error {
	if len(t.unseen) >= maxUnseen || len(u.What) > maxStringBytes {
		return fmt.Errorf("%w: %d kinds of what was not seen", ErrLimit, len(t.unseen))
	}
	t.unseen = append(t.unseen, u)
	return nil
}

// Unseen says what the records of this rank don't show. It is called once for each kind, at the end.
func (rw *RankWriter) Unseen(u Unseen) error {
	if err := rw.tables.addUnseen(u); err != nil {
		return rw.wrap(err)
	}
	rw.defs = binary.AppendUvarint(append(rw.defs, defUnseen), u.Times)
	rw.defs = binary.AppendUvarint(rw.defs, u.Bytes)
	rw.defs = append(binary.AppendUvarint(rw.defs, uint64(len(u.What))), u.What...)
	return rw.w.err
}

// unseenBefore is what no record showed before version 4, nor does CSV.
const unseenBefore = "ends of buffers, and registrations of memory that no call was given, such as copies that MPI makes"

// Unseen sums up what the records of all ranks don't show, by kind.
func (f *File) Unseen() (all []Unseen, err error) {
	if f.format < 4 {
		all = append(all, Unseen{What: unseenBefore})
	}
	for _, rank := range f.Ranks() {
		rr, err := f.Rank(rank)
		if err != nil {
			return nil, err
		}
		for _, u := range rr.tables.unseen {
			i := slices.IndexFunc(all, func(o Unseen) bool { return o.What == u.What })
			if i < 0 {
				i, all = len(all), append(all, Unseen{What: u.What})
			}
			all[i].Times += u.Times
			all[i].Bytes += u.Bytes
		}
	}
	return all, nil
}
