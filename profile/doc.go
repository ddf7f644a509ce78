// Package profile keeps what a run has learned for the next run of the same job.
//
// # Key
//
// A job is a program with its arguments on a number of ranks; see Key. Of another job nothing is
// loaded, because its trained entries would be wrong. Call sites are told by module and offset
// (Modules.Frame), so that they are the same wherever the system loads a library. A file lists the
// build IDs of the libraries that its call sites are in; if one of them has changed since, nothing
// is loaded either.
//
// # Files
//
// A Store is a directory. It has a directory for each job, and that has one file for each node:
//
//	DIR/PROGRAM-KEY/RANKS.profile      ft.B.x-3f0c8a1e99d2b457/0-63.profile
//
// A file is replaced whole or not at all (internal/outfile). The name says which ranks it has, so
// that a rank finds its file when the job runs on other nodes than before. When the
// directory exceeds its limit, the jobs that were used least recently go.
//
//	prelude  magic, version, length of the head, CRC-32C of the head     20 bytes
//	head     key, modules, and for each rank: where its part is, CRC-32C
//	parts    the trained entries of each rank, compressed with zstd
//
// A rank reads the head and its own part. Times are rounded down to 8 significant bits.
//
// # Nodes
//
// The ranks of a node hand their parts to one of them, which writes the file (HandIn). So a
// job of many ranks does not flood a parallel file system when it ends.
//
// # Caveats
//
// A file may be damaged or hostile. Every length is checked before memory is allocated for it, and
// a part that does not match its checksum is refused. What a wrong profile may cost is bounded by
// the predictor, which drops an entry that the run contradicts.
package profile
