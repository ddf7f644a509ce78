// Package perturb makes programs that a policy can't foresee: recorded runs whose compute phases are noisy or change
// their pace, and made-up traffic without any order. A policy may save little on them, but must not cost anything.
//
// Everything is deterministic: the same Kind and seed give the same records. Messages still match, because only times
// change, or both sides are made alike.
package perturb

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"

	"pinwheel/lab/replay"
	"pinwheel/trace"
)

// Kind is a way to change the compute phases of a recorded run.
type Kind string

// The kinds.
const (
	Noise5  Kind = "noise of 5 %"      // each compute phase, by a normal distribution
	Noise20 Kind = "noise of 20 %"     // the same
	Halve   Kind = "halved in mid-run" // all compute phases from the middle of the run on
	Double  Kind = "doubled in mid-run"
	Drift   Kind = "drift" // they grow evenly, until they take twice as long in the end
)

// Kinds returns all kinds, in the order of a table.
func Kinds() []Kind { return []Kind{Noise5, Noise20, Halve, Double, Drift} }

// Job is a run whose compute phases are changed.
type Job struct {
	replay.Job
	kind Kind
	seed uint64

	mu      sync.Mutex
	lengths map[int]int64 // by rank: when its records end; protected by mu
}

// New returns a job with changed compute phases.
func New(job replay.Job, k Kind, seed uint64) *Job {
	return &Job{Job: job, kind: k, seed: seed, lengths: map[int]int64{}}
}

// Program implements replay.Job.
func (j *Job) Program() string { return fmt.Sprintf("%s, %s", j.Job.Program(), j.kind) }

// Rank implements replay.Job. It reads the rank once to learn how long it is.
func (j *Job) Rank(id int) (replay.Stream, error) {
	length, err := j.length(id)
	if err != nil {
		return nil, err
	}
	s, err := j.Job.Rank(id)
	if err != nil {
		return nil, err
	}
	return &stretched{Stream: s, kind: j.kind, lengthNs: length, rng: rand.New(rand.NewPCG(j.seed, uint64(id)))}, nil
}

func (j *Job) length(id int) (int64, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if n, ok := j.lengths[id]; ok {
		return n, nil
	}
	s, err := j.Job.Rank(id)
	if err != nil {
		return 0, err
	}
	var r trace.Record
	for err == nil {
		err = s.Next(&r)
	}
	if !errors.Is(err, io.EOF) {
		return 0, err
	}
	j.lengths[id] = r.EndNs
	return r.EndNs, nil
}

// stretched changes the times between the calls of a rank.
type stretched struct {
	replay.Stream
	kind     Kind
	lengthNs int64
	rng      *rand.Rand
	any      bool         // a record was read
	was, is  trace.Record // the latest, as recorded and as changed
}

// Next implements replay.Stream. Records of one call keep their common times.
func (s *stretched) Next(r *trace.Record) error {
	if err := s.Stream.Next(r); err != nil {
		return err
	}
	recorded := *r
	if s.any && replay.SameCall(&s.was, r) {
		r.StartNs, r.EndNs, r.StartCPUNs, r.EndCPUNs = s.is.StartNs, s.is.EndNs, s.is.StartCPUNs, s.is.EndCPUNs
	} else {
		factor := s.factor(float64(r.StartNs) / float64(max(s.lengthNs, 1)))
		stretch := func(start, end *int64, wasEnd, isEnd int64) {
			length := *end - *start
			*start = isEnd + int64(factor*float64(*start-wasEnd))
			*end = *start + length
		}
		stretch(&r.StartNs, &r.EndNs, s.was.EndNs, s.is.EndNs)
		stretch(&r.StartCPUNs, &r.EndCPUNs, s.was.EndCPUNs, s.is.EndCPUNs)
	}
	s.any, s.was, s.is = true, recorded, *r
	return nil
}

// factor is by how much the next compute phase is longer, at a share of the run.
func (s *stretched) factor(share float64) float64 {
	switch s.kind {
	case Noise5:
		return s.noise(0.05)
	case Noise20:
		return s.noise(0.20)
	case Halve:
		if share >= 0.5 {
			return 0.5
		}
	case Double:
		if share >= 0.5 {
			return 2
		}
	case Drift:
		return 1 + share
	}
	return 1
}

// noise is 1 on average. No compute phase becomes negative.
func (s *stretched) noise(sigma float64) float64 { return max(0, 1+sigma*s.rng.NormFloat64()) }
