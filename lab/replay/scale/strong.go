package scale

import (
	"fmt"
	"slices"
	"strings"

	"pinwheel/lab/replay"
	"pinwheel/trace"
)

// Options say how a run is derived.
type Options struct {
	// Layout is FT's grid of ranks, np1 x np2; zeros for that of the program.
	Layout [2]int
	// Class is that of FT's problem, if it is larger than the recorded one; "" for the recorded one.
	Class string
	// Grown says that the problem grows with the ranks, so that each has as much of it as was recorded, for FT, BT and SP.
	Grown bool
	// Iterations is how many a run has of its main loop; 0: as many as were recorded. For more, the
	// recorded ones from the third on are repeated.
	Iterations int
}

// decomposition is how a program divides its problem among a number of ranks.
type decomposition interface {
	// stream prepares the stream of a rank, which has its model already.
	stream(id int, s *stream)
}

// rule makes the decomposition of a program. It fails with ErrUnfit if that doesn't run on so many ranks.
type rule func(b *Base, ranks int, o *Options) (decomposition, error)

var rules = map[string]rule{
	"bt": multipartitioned(&bt),
	"cg": newCG,
	"ft": newFT,
	"is": newIS,
	"sp": multipartitioned(&sp),
}

// grow are the programs whose rule has larger problems, too.
var grow = []string{"bt", "ft", "sp"}

// strong is a run on more ranks than were recorded.
type strong struct {
	base  *Base
	ranks int
	opt   Options
	decomposition
	recorded int // iterations
}

// StrongJob returns the job of the same problem on more ranks, or of a larger one if the options say so. ErrUnfit says
// that the program has no rule, or doesn't run on so many ranks.
func StrongJob(b *Base, ranks int, o Options) (replay.Job, error) {
	rule := rules[b.program]
	if rule == nil {
		return nil, fmt.Errorf("%s %w: there is no rule for how %s divides its problem", b.name, ErrUnfit, b.program)
	}
	if o.Class != "" && b.program != "ft" {
		return nil, unfit(b, ranks, "there is a rule for other classes of ft alone")
	}
	if o.Grown && !slices.Contains(grow, b.program) {
		return nil, unfit(b, ranks, "there is a rule for larger problems of "+strings.Join(grow, ", ")+" alone")
	}
	if ranks < len(b.ranks) {
		return nil, fmt.Errorf("%s %w to %d ranks, fewer than were recorded", b.name, ErrUnfit, ranks)
	}
	d, err := rule(b, ranks, &o)
	if err != nil {
		return nil, err
	}
	j := &strong{base: b, ranks: ranks, decomposition: d}
	s := j.open(0)
	for err == nil {
		err = s.Next(&trace.Record{})
	}
	if j.opt, j.recorded = o, s.iterations; o.Iterations > j.recorded && j.recorded <= unrepeated {
		return nil, unfit(b, ranks, fmt.Sprintf("it has %d iterations, too few to repeat them", j.recorded))
	}
	return j, nil
}

// Fits reports whether a program runs on so many ranks.
func Fits(b *Base, ranks int, kind Kind) bool {
	_, err := StrongJob(b, ranks, Options{Grown: kind == Weak})
	return err == nil
}

func (j *strong) Ranks() int { return j.ranks }

// Program is the name of the recorded run, or of another class.
func (j *strong) Program() string {
	if j.opt.Class == "" || j.opt.Class == j.base.class {
		return j.base.name
	}
	return fmt.Sprintf("%s.%s.%d", j.base.program, j.opt.Class, j.ranks)
}

func (j *strong) Rank(id int) (replay.Stream, error) {
	if id < 0 || id >= j.ranks {
		return nil, fmt.Errorf("rank %d of %d", id, j.ranks)
	}
	return j.open(id), nil
}

func (j *strong) open(id int) *stream {
	s := &stream{model: &j.base.ranks[id%len(j.base.ranks)], limit: j.opt.Iterations, recorded: j.recorded}
	j.stream(id, s)
	return s
}

// unfit says that a program doesn't run on so many ranks.
func unfit(b *Base, ranks int, why string) error {
	return fmt.Errorf("%s %w to %d ranks: %s", b.name, ErrUnfit, ranks, why)
}

// world is the communicator of all ranks.
func world(ranks int) []int32 {
	w := make([]int32, ranks)
	for i := range w {
		w[i] = int32(i)
	}
	return w
}

// worldOnly resolves communicators of a program in which all have all ranks.
func worldOnly(s *stream, world []int32) {
	s.comm = func(id int32) []int32 {
		if s.model.comms[id] == nil {
			return nil
		}
		return world
	}
}

// share is a time of the recorded run, divided among more ranks.
func share(ns int64, recorded, ranks int) int64 { return ns * int64(recorded) / int64(ranks) }

func isPowerOf2(n int) bool { return n > 0 && n&(n-1) == 0 }

// Programs are those with a rule, in alphabetical order.
func Programs() []string {
	var names []string
	for name := range rules {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
