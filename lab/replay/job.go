package replay

import "pinwheel/trace"

// Job is what all ranks of a program do: a recorded run, or one that is derived from it
// (package lab/replay/scale). It may be used by several goroutines.
type Job interface {
	Program() string
	Ranks() int
	// Rank returns a new stream of the records of a rank.
	Rank(id int) (Stream, error)
}

// Stream gives the records of one rank in order; *trace.RankReader is one. It belongs to one
// goroutine. What its methods return must not be modified.
type Stream interface {
	// Next reads the next record into r. It returns io.EOF after the last one.
	Next(r *trace.Record) error
	// Comm returns the members of a communicator as world ranks, nil if this rank has no such one.
	Comm(id int32) []int32
	// CommName returns what is the same for a communicator on all its members, 0 if that isn't known.
	CommName(id int32) uint64
	// Frames returns the return addresses of a call site, innermost first.
	Frames(stack uint32) []uint64
	// LeftOut says which calls the records lack.
	LeftOut() []trace.LeftOut
}

// RunOf returns the run that a trace recorded. The file must stay open.
func RunOf(f *trace.File) Job { return recorded{f} }

// recorded is the Job of a trace.
type recorded struct{ file *trace.File }

func (r recorded) Program() string             { return r.file.Header().Program }
func (r recorded) Ranks() int                  { return r.file.Header().Ranks }
func (r recorded) Rank(id int) (Stream, error) { return r.file.Rank(id) }
