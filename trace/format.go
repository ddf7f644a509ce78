package trace

import (
	"encoding/binary"
	"hash/crc32"
)

// Version of the format that this package writes. A reader refuses a file of
// a higher version. Version 2 added operations, named communicators, and
// definitions of what requests were matched with and of calls left out.
// Version 3 added modules. Version 4 added OpUnmap, and definitions
// of the place of a rank and of what a recorder could not see.
const Version = 4

const (
	preludeMagic = "\x89PWT\r\n\x1a\n" // as PNG: damaged by any transfer that alters text
	trailerMagic = "PWTEND\r\n"
	preludeBytes = 16
	trailerBytes = 16
	frameMagic   = 0x46545750 // "PWTF"
)

// Limits of the format, which bound what a hostile file can make a reader
// allocate.
const (
	MaxRanks = 1 << 20

	maxFrameBytes    = 4 << 20 // content of a frame; a communicator of MaxRanks fits
	maxPackedBytes   = maxFrameBytes + 1<<16
	targetFrameBytes = 64 << 10 // the writer closes a frame that exceeds this
	maxStringBytes   = 4 << 10
	maxStackFrames   = 256     // return addresses of one call site
	maxStacks        = 1 << 16 // call sites of one rank
	maxStackTotal    = 1 << 20 // return addresses of all call sites of one rank
	maxComms         = 1 << 16 // communicators of one rank
	maxCommTotal     = 1 << 22 // members of all communicators of one rank
	maxMatches       = 1 << 20 // requests of one rank of which it is known what they were matched with
	maxModules       = 1 << 12 // that call sites of one rank are in
	maxLeftOut       = 64      // kinds of calls that one rank's records lack
	maxUnseen        = 64      // kinds of what a recorder could not see
)

type frameKind uint8

const (
	frameHeader  frameKind = 'H'
	frameDefs    frameKind = 'D'
	frameRecords frameKind = 'R'
	frameIndex   frameKind = 'I'
)

// frameInfo is what precedes each frame's zstd data.
type frameInfo struct {
	kind            frameKind
	rank            uint32
	records         uint32
	rawBytes        uint32 // content
	packedBytes     uint32 // zstd data
	firstNs, lastNs int64  // start of the first record, end of the last
}

// Layout, little endian: magic u32, kind u32, rank u32, records u32,
// rawBytes u32, packedBytes u32, firstNs i64, lastNs i64, crc u32. The CRC-32C
// covers the fields before it and the zstd data.
const (
	frameInfoBytes = 44
	crcOffset      = frameInfoBytes - 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (fi *frameInfo) append(b, packed []byte) []byte {
	at := len(b)
	b = binary.LittleEndian.AppendUint32(b, frameMagic)
	b = binary.LittleEndian.AppendUint32(b, uint32(fi.kind))
	b = binary.LittleEndian.AppendUint32(b, fi.rank)
	b = binary.LittleEndian.AppendUint32(b, fi.records)
	b = binary.LittleEndian.AppendUint32(b, fi.rawBytes)
	b = binary.LittleEndian.AppendUint32(b, fi.packedBytes)
	b = binary.LittleEndian.AppendUint64(b, uint64(fi.firstNs))
	b = binary.LittleEndian.AppendUint64(b, uint64(fi.lastNs))
	return binary.LittleEndian.AppendUint32(b, crc32.Update(crc32.Checksum(b[at:], castagnoli), castagnoli, packed))
}

// parseFrameInfo reads the fixed part of a frame; the checksum is for
// checkFrame once the data is there.
func parseFrameInfo(b []byte) (frameInfo, error) {
	fi := frameInfo{
		kind:        frameKind(b[4]),
		rank:        binary.LittleEndian.Uint32(b[8:]),
		records:     binary.LittleEndian.Uint32(b[12:]),
		rawBytes:    binary.LittleEndian.Uint32(b[16:]),
		packedBytes: binary.LittleEndian.Uint32(b[20:]),
		firstNs:     int64(binary.LittleEndian.Uint64(b[24:])),
		lastNs:      int64(binary.LittleEndian.Uint64(b[32:])),
	}
	switch {
	case binary.LittleEndian.Uint32(b) != frameMagic || binary.LittleEndian.Uint32(b[4:]) > 0xff:
		return fi, corruptf("no frame begins here")
	case fi.rawBytes > maxFrameBytes || fi.packedBytes > maxPackedBytes || fi.rank >= MaxRanks || fi.records > fi.rawBytes:
		return fi, corruptf("frame of %d bytes with %d records for rank %d", fi.rawBytes, fi.records, fi.rank)
	case fi.firstNs < 0 || fi.lastNs < fi.firstNs:
		return fi, corruptf("frame from %d ns to %d ns", fi.firstNs, fi.lastNs)
	}
	return fi, nil
}

// checkFrame verifies the checksum of a frame: its fixed part and data.
func checkFrame(info, packed []byte) bool {
	sum := crc32.Update(crc32.Checksum(info[:crcOffset], castagnoli), castagnoli, packed)
	return sum == binary.LittleEndian.Uint32(info[crcOffset:])
}
