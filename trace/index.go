package trace

import "encoding/binary"

// indexEntry is one frame of a file.
type indexEntry struct {
	frameInfo
	offset int64
}

// end is the offset of the byte after the frame.
func (e *indexEntry) end() int64 { return e.offset + frameInfoBytes + int64(e.packedBytes) }

// Index frames hold, for every definition and record frame in file order:
// kind, distance from the end of the frame before, rank, records, rawBytes,
// packedBytes, firstNs, lastNs - firstNs. Each index frame but the last is
// followed by the next.

func (e *indexEntry) encode(b []byte, prevEnd int64) []byte {
	b = append(b, byte(e.kind))
	b = binary.AppendUvarint(b, uint64(e.offset-prevEnd))
	for _, v := range []uint32{e.rank, e.records, e.rawBytes, e.packedBytes} {
		b = binary.AppendUvarint(b, uint64(v))
	}
	b = binary.AppendUvarint(b, uint64(e.firstNs))
	return binary.AppendUvarint(b, uint64(e.lastNs-e.firstNs))
}

// decodeIndex appends the entries of one index frame.
func decodeIndex(entries []indexEntry, raw []byte, prevEnd, fileEnd int64) ([]indexEntry, int64, error) {
	in := cursor{b: raw}
	for in.off < len(raw) {
		var e indexEntry
		e.kind = frameKind(in.byte())
		e.offset = in.after(prevEnd)
		e.rank, e.records = in.small(), in.small()
		e.rawBytes, e.packedBytes = in.small(), in.small()
		e.firstNs = in.after(0)
		e.lastNs = in.after(e.firstNs)
		if in.bad || e.offset > fileEnd || e.end() > fileEnd {
			return nil, 0, corruptf("index")
		}
		prevEnd = e.end()
		entries = append(entries, e)
	}
	return entries, prevEnd, nil
}

// rankIndex are the frames of one rank, in file order.
type rankIndex struct {
	defs, recs []indexEntry
	records    uint64
}

// byRank sorts a file's frames, checking that the record frames of a rank
// follow each other in time.
func byRank(entries []indexEntry, ranks int) (map[int]*rankIndex, error) {
	m := map[int]*rankIndex{}
	for _, e := range entries {
		if int(e.rank) >= ranks {
			return nil, corruptf("frame of rank %d in a run of %d ranks", e.rank, ranks)
		}
		ri := m[int(e.rank)]
		if ri == nil {
			ri = &rankIndex{}
			m[int(e.rank)] = ri
		}
		switch e.kind {
		case frameDefs:
			ri.defs = append(ri.defs, e)
		case frameRecords:
			if n := len(ri.recs); n > 0 && (e.firstNs < ri.recs[n-1].firstNs || e.lastNs < ri.recs[n-1].lastNs) {
				return nil, corruptf("frames of rank %d are out of order", e.rank)
			}
			ri.recs = append(ri.recs, e)
			ri.records += uint64(e.records)
		default:
			return nil, corruptf("frame of unknown kind %q", e.kind)
		}
	}
	return m, nil
}
