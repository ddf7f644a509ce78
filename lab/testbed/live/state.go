package main

import (
	"path/filepath"

	"pinwheel/lab/kit"
)

// outcome is a line of a state file: what came of one run.
type outcome struct {
	Run     string  `json:"run"`
	Failed  string  `json:"failed,omitempty"` // why
	Seconds float64 `json:"seconds,omitempty"`
	Killed  bool    `json:"killed,omitempty"` // a rank
	// Of runs without Pinwheel, what was ever seen of several of them: statuses, kinds of what they left behind, and
	// the longest time that ranks went on after one was killed.
	Statuses []int    `json:"statuses,omitempty"`
	Left     []string `json:"left,omitempty"`
	Slowest  float64  `json:"slowest_seconds,omitempty"`
}

// state has the outcomes of earlier runs of the same build. A command that was
// killed goes on behind the last of them.
type state struct {
	kit.Log[kit.Head, outcome]
	done map[string]outcome
}

// openState opens or makes a state file. What another build has done does not count.
func openState(path, stamp string) (*state, error) {
	s := &state{done: map[string]outcome{}}
	if err := s.Open(path, kit.Head{Build: stamp}); err != nil {
		return nil, err
	}
	for _, o := range s.Lines {
		s.done[o.Run] = o
	}
	return s, nil
}

// add notes an outcome; it replaces an earlier one of the same run.
func (s *state) add(o outcome) error {
	s.done[o.Run] = o
	return s.Add(o)
}

// passed reports whether a run is over and was good. One that failed is run again.
func (s *state) passed(run string) bool {
	o, ok := s.done[run]
	return ok && o.Failed == ""
}

// stamp names what this run tests.
func (b bench) stamp(more ...string) (string, error) {
	beside := filepath.Dir(b.Pinwheel)
	return kit.Stamp(append(more, filepath.Join(beside, "libpinwheel.so"), filepath.Join(beside, "libpinwheel-go.so"),
		filepath.Join(b.Softverbs, "lib"), b.Sources)...)
}
