package trace

import (
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/klauspost/compress/zstd"

	"pinwheel/internal/outfile"
)

// Output is where a Writer writes; *outfile.File is one.
type Output interface {
	io.Writer
	Commit() error  // makes what was written durable, and known
	Discard() error // drops it; after Commit it does nothing
}

// Writer writes a .pwt file. It writes to a file in the directory of the target, named PATH.NUMBER.partial, which Close
// renames: a file of the target's name is always whole. What a crash leaves under the partial name can be opened as a
// torn trace. See package outfile for targets that are no regular file.
type Writer struct {
	path    string // for messages
	out     Output
	header  Header
	enc     *zstd.Encoder
	ranks   map[int]*RankWriter
	entries []indexEntry
	offset  int64
	frame   []byte // scratch: fixed part and zstd data of one frame
	err     error  // first write error; sticks
}

// Create begins a trace at path. The file appears there when Close returns
// without error.
func Create(path string, h Header) (*Writer, error) {
	out, err := outfile.Create(path)
	if err != nil {
		return nil, err
	}
	return NewWriter(out, path, h)
}

// NewWriter begins a trace; name is for messages. The Writer owns out, also if
// that fails.
func NewWriter(out Output, name string, h Header) (*Writer, error) {
	w := &Writer{path: name, out: out, header: h, ranks: map[int]*RankWriter{}}
	if err := w.begin(); err != nil {
		_ = w.Abort() // err is the cause
		return nil, err
	}
	return w, nil
}

// begin writes what is before the first frame of a rank.
func (w *Writer) begin() error {
	if w.header.Clock == "" {
		w.header.Clock = ClockMonotonic
	}
	raw, err := w.header.encode()
	if err != nil {
		return fmt.Errorf("trace %s: %w", w.path, err)
	}
	w.enc, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedBetterCompression),
		zstd.WithWindowSize(1<<20), zstd.WithEncoderCRC(false))
	if err != nil {
		return err
	}
	prelude := binary.LittleEndian.AppendUint32([]byte(preludeMagic), Version)
	prelude = append(prelude, 0, 0, 0, 0)
	// In one piece: of a process that is killed there is all of it or nothing.
	fi, packed := w.pack(frameInfo{kind: frameHeader}, raw)
	w.write(append(fi.append(prelude, packed), packed...))
	return w.err
}

// Header returns the header as written.
func (w *Writer) Header() Header { return w.header }

// Rank returns the writer of one rank's records; the same one each time.
func (w *Writer) Rank(rank int) (*RankWriter, error) {
	if rank < 0 || rank >= w.header.Ranks {
		return nil, fmt.Errorf("trace %s: %w", w.path, invalidf("rank %d in a run of %d ranks", rank, w.header.Ranks))
	}
	rw := w.ranks[rank]
	if rw == nil {
		rw = newRankWriter(w, rank)
		w.ranks[rank] = rw
	}
	return rw, nil
}

// Flush writes out what every rank has gathered, so that it survives a
// crash of this process. Frequent flushing costs compression.
func (w *Writer) Flush() error {
	for _, rank := range slices.Sorted(maps.Keys(w.ranks)) {
		w.ranks[rank].flush()
	}
	return w.err
}

// Close writes the index, makes the content durable and then gives the file
// its name. The writer can't be used afterwards, whether Close fails or not.
func (w *Writer) Close() error {
	_ = w.Flush() // the error sticks
	w.writeIndex()
	if w.err != nil {
		_ = w.Abort() // w.err is the cause
		return w.err
	}
	w.enc.Close()
	return w.out.Commit()
}

// Abort drops the trace and removes its partial file. After Close it does
// nothing.
func (w *Writer) Abort() error {
	if w.enc != nil {
		w.enc.Close()
	}
	return w.out.Discard()
}

func (w *Writer) writeIndex() {
	first, prevEnd := w.offset, int64(0)
	var raw []byte
	for _, e := range w.entries {
		raw = e.encode(raw, prevEnd)
		prevEnd = e.end()
		if len(raw) > targetFrameBytes {
			w.writeFrame(frameInfo{kind: frameIndex}, raw)
			raw = raw[:0]
		}
	}
	w.writeFrame(frameInfo{kind: frameIndex}, raw)
	w.write(append(binary.LittleEndian.AppendUint64(nil, uint64(first)), trailerMagic...))
}

// writeFrame compresses raw, completes fi and appends both.
func (w *Writer) writeFrame(fi frameInfo, raw []byte) {
	w.writePacked(w.pack(fi, raw))
}

func (w *Writer) pack(fi frameInfo, raw []byte) (frameInfo, []byte) {
	w.frame = w.enc.EncodeAll(raw, w.frame[:0])
	fi.rawBytes, fi.packedBytes = uint32(len(raw)), uint32(len(w.frame))
	return fi, w.frame
}

// writePacked appends a complete frame to the file and the index.
func (w *Writer) writePacked(fi frameInfo, packed []byte) {
	if fi.kind == frameDefs || fi.kind == frameRecords {
		w.entries = append(w.entries, indexEntry{fi, w.offset})
	}
	w.write(fi.append(nil, packed))
	w.write(packed)
}

func (w *Writer) write(b []byte) {
	if w.err != nil {
		return
	}
	var n int
	n, w.err = w.out.Write(b)
	w.offset += int64(n)
}
