package trace

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"

	"github.com/klauspost/compress/zstd"

	"pinwheel/internal/outfile"
)

// File is an open trace. All its methods are safe for concurrent use.
type File struct {
	path   string
	in     io.ReaderAt
	closer io.Closer
	size   int64
	dec    *zstd.Decoder
	header Header
	format uint32 // version
	ranks  map[int]*rankIndex
	torn   *TornError
}

// Open opens a .pwt file and reads its index. A file without an index, as a
// crash leaves it, is scanned for whole frames; Torn then says so.
func Open(path string) (*File, error) {
	in, err := outfile.OpenInput(path)
	if err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	st, err := in.Stat()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("trace: %w", err), in.Close())
	}
	f, err := NewFile(path, in, st.Size())
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	f.closer = in
	return f, nil
}

// NewFile opens a trace of the given size in bytes from memory or any other
// source; name is for messages. The caller closes the source after the File.
func NewFile(name string, in io.ReaderAt, size int64) (*File, error) {
	dec, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(maxFrameBytes), zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, err
	}
	f := &File{path: name, in: in, size: size, dec: dec}
	if err := f.load(); err != nil {
		dec.Close()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return f, nil
}

// Close releases the file. RankReaders can't be used afterwards.
func (f *File) Close() error {
	f.dec.Close()
	if f.closer == nil {
		return nil
	}
	return f.closer.Close()
}

// Header describes the run.
func (f *File) Header() Header { return f.header }

// Torn returns a *TornError if the end of the trace is missing, nil if it is whole.
func (f *File) Torn() error {
	if f.torn == nil {
		return nil
	}
	return f.torn
}

// Ranks returns the ranks that the file has data of, ascending.
func (f *File) Ranks() []int { return slices.Sorted(maps.Keys(f.ranks)) }

// Records returns the number of records of one rank, 0 if it is not in the file.
func (f *File) Records(rank int) uint64 {
	if ri := f.ranks[rank]; ri != nil {
		return ri.records
	}
	return 0
}

// Rank begins reading one rank from its first record.
func (f *File) Rank(rank int) (*RankReader, error) {
	return f.Window(rank, math.MinInt64, math.MaxInt64)
}

// Window begins reading those records of one rank whose calls end at fromNs
// or later and start before toNs (wall clock), without reading what lies
// before.
func (f *File) Window(rank int, fromNs, toNs int64) (*RankReader, error) {
	ri := f.ranks[rank]
	if ri == nil {
		return nil, fmt.Errorf("%s: rank %d: %w", f.path, rank, ErrNoRank)
	}
	rr := &RankReader{f: f, rank: rank, fromNs: fromNs, toNs: toNs, tables: newTables(f.header.Ranks)}
	for _, e := range ri.defs {
		if err := rr.load(e); err != nil {
			return nil, err
		}
		if err := rr.tables.load(rr.in.b); err != nil {
			return nil, rr.wrap(e, err)
		}
	}
	rr.in = cursor{}
	// Frames are in order of time: skip those that end before the window.
	first, _ := slices.BinarySearchFunc(ri.recs, fromNs, func(e indexEntry, t int64) int {
		if e.lastNs < t {
			return -1
		}
		return 1
	})
	rr.frames = ri.recs[first:]
	return rr, nil
}

// load reads the prelude, the header and the index, or what stands in for it.
func (f *File) load() error {
	var pre [preludeBytes]byte
	if _, err := f.in.ReadAt(pre[:], 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if string(pre[:len(preludeMagic)]) != preludeMagic {
		return ErrNotTrace
	}
	if f.format = binary.LittleEndian.Uint32(pre[len(preludeMagic):]); f.format > Version {
		return fmt.Errorf("%w: %d, this is %d", ErrVersion, f.format, Version)
	}
	var buf frameBuffer
	fi, err := buf.read(f, preludeBytes)
	if err != nil || fi.kind != frameHeader {
		return corruptf("no header") // cut before anything could be known
	}
	if f.header, err = decodeHeader(buf.raw); err != nil {
		return err
	}
	firstFrame := preludeBytes + frameInfoBytes + int64(fi.packedBytes)
	entries, err := f.readIndex(&buf)
	if err != nil {
		entries = f.scan(&buf, firstFrame)
	}
	f.ranks, err = byRank(entries, f.header.Ranks)
	return err
}

// readIndex follows the trailer to the index frames.
func (f *File) readIndex(buf *frameBuffer) ([]indexEntry, error) {
	var tr [trailerBytes]byte
	if _, err := f.in.ReadAt(tr[:], f.size-trailerBytes); err != nil {
		return nil, err
	}
	end := f.size - trailerBytes
	at := int64(binary.LittleEndian.Uint64(tr[:]))
	if string(tr[8:]) != trailerMagic || at < preludeBytes || at >= end {
		return nil, corruptf("no trailer")
	}
	var entries []indexEntry
	for framesEnd, prevEnd := at, int64(0); at < end; {
		fi, err := buf.read(f, at)
		if err != nil {
			return nil, err
		}
		if fi.kind != frameIndex {
			return nil, corruptf("index")
		}
		if entries, prevEnd, err = decodeIndex(entries, buf.raw, prevEnd, framesEnd); err != nil {
			return nil, err
		}
		at += frameInfoBytes + int64(fi.packedBytes)
	}
	return entries, nil
}

// scan collects the whole frames from at on, as far as they go.
func (f *File) scan(buf *frameBuffer, at int64) []indexEntry {
	var entries []indexEntry
	torn := &TornError{Path: f.path}
	for {
		fi, err := buf.read(f, at)
		if err != nil || fi.kind != frameDefs && fi.kind != frameRecords {
			break
		}
		entries = append(entries, indexEntry{fi, at})
		at += frameInfoBytes + int64(fi.packedBytes)
		torn.Frames++
		torn.Records += uint64(fi.records)
	}
	torn.KeptBytes, torn.LostBytes = at, f.size-at
	f.torn = torn
	return entries
}

// frameBuffer holds one frame; it is reused for the next.
type frameBuffer struct {
	packed, raw []byte
}

// read reads, verifies and decompresses the frame at an offset into raw.
func (b *frameBuffer) read(f *File, at int64) (frameInfo, error) {
	var head [frameInfoBytes]byte
	if at > f.size-frameInfoBytes {
		return frameInfo{}, corruptf("frame at byte %d is cut off", at)
	}
	if _, err := f.in.ReadAt(head[:], at); err != nil {
		return frameInfo{}, err
	}
	fi, err := parseFrameInfo(head[:])
	if err != nil {
		return fi, err
	}
	if int64(fi.packedBytes) > f.size-at-frameInfoBytes {
		return fi, corruptf("frame at byte %d is cut off", at)
	}
	b.packed = slices.Grow(b.packed[:0], int(fi.packedBytes))[:fi.packedBytes]
	if _, err := f.in.ReadAt(b.packed, at+frameInfoBytes); err != nil {
		return fi, err
	}
	if !checkFrame(head[:], b.packed) {
		return fi, corruptf("checksum of the frame at byte %d", at)
	}
	b.raw = slices.Grow(b.raw[:0], int(fi.rawBytes))
	if b.raw, err = f.dec.DecodeAll(b.packed, b.raw); err != nil || len(b.raw) != int(fi.rawBytes) {
		return fi, corruptf("frame at byte %d does not decompress to its length", at)
	}
	return fi, nil
}
