// Package report is the report of a run: each process writes one when it ends
// (PINWHEEL_STATS), under the preload library as from a Go transport, and
// "pinwheel run --stats" and "pinwheel report" make one of the files of all ranks.
//
// A report is text for people, in the manner of mpiP: a header, one line a
// rank, an aggregate line marked *, why nothing was released, if so (why.go), and the
// call sites that communicate most. The file of a rank whose name ends in .json is
// one Rank as JSON, with its history, of which "pinwheel report --html" draws charts.
//
// Everything here is a plain value; nothing is shared between goroutines.
package report
