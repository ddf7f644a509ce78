// Package trace is the form in which communication of a parallel program is
// kept: one Record per buffer of a communication call, in the file format
// .pwt, with a streaming reader, a streaming writer and an importer for the
// CSV of the recorder.
//
// A .pwt file holds the records of any number of ranks of one run:
//
//	prelude  8 bytes magic, version                       16 bytes
//	frames   header frame, then per rank definition       44 bytes + zstd frame
//	         frames and record frames, then index frames
//	trailer  offset of the first index frame, magic       16 bytes
//
// Every frame states its kind, rank, number of records, first and last time,
// both lengths, and a CRC-32C over all of it, and is a complete zstd frame of
// at most 4 MiB of content. Records are coded as variable-length integers:
// times as differences to the call before, everything else only where it
// differs from the last record of the same call site. The coder starts again in every frame, so one rank or a window of
// time is read through the index without touching the rest; definition frames hold call sites (stacks of return
// addresses) and communicators, and precede the records that use them; what becomes known later, as the source of a
// receive from any source, stands in a definition frame after the record and is put into it on reading.
//
// # Ownership
//
// A File may be shared between goroutines; each RankReader belongs to one.
// A Writer with all its RankWriters belongs to one goroutine. Reader and
// writer need memory for one frame per open rank and for the definitions,
// whatever the length of the trace.
//
// # Caveats
//
// Calls of one rank follow each other: a rank whose calls overlap (several
// communicating threads) can not be stored as one rank. What a recorder had to
// leave out it says: RankWriter.LeaveOut, RankReader.LeftOut; and what it could not see: RankWriter.Unseen.
//
// A file that was cut off, by a crash of its writer or of the machine, opens
// all the same: its whole frames are found by scanning, and Torn says what
// was lost. A frame in the middle that fails its checksum is an error.
package trace
