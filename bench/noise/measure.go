package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"pinwheel/internal/jobreport"
	"pinwheel/internal/report"
	"pinwheel/testbed/live/runlog"
	"pinwheel/testbed/live/stack"
)

const (
	source = "bench/noise/programs/quanta.c"
	ranks  = 2
)

// head is the first line of a file of runs, and says what was measured where.
type head struct {
	runlog.Head
	Stack string `json:"stack"`
}

// figures are what quanta.c tells of some durations.
type figures struct {
	N       int64   `json:"n"`
	SumNs   float64 `json:"sum_ns"`
	LeastNs float64 `json:"least_ns"`
	P50Ns   float64 `json:"p50_ns"`
	P99Ns   float64 `json:"p99_ns"`
	MaxNs   float64 `json:"max_ns"`
}

// rank is what one rank measured: its quanta, their processor time, and how long after the message that it waited
// for each wait ended.
type rank struct {
	Rank   int     `json:"rank"`
	Quanta figures `json:"quanta"`
	CPU    figures `json:"cpu"`
	Waits  figures `json:"waits"`
}

// places are the rows, and what quanta.c binds in each.
var places = map[string]string{
	"shared": "own",  // helpers are bound to their ranks' processors
	"auto":   "rank", // helpers run where PINWHEEL_IDLE_POLICY puts them, while all processors are busy
	"idle":   "free", // all ranks share a processor, and all helpers another one
}

// mode is whether a run is one under Pinwheel.
type mode string

const (
	without mode = "without" // the transport keeps its registrations
	with    mode = "with"
)

// run is any other line.
type run struct {
	Row    string       `json:"row"`
	Mode   mode         `json:"mode"`
	Round  int          `json:"round"` // from 0
	Load   float64      `json:"load"`  // of the machine before the run (proc_loadavg(5)), over one minute
	Ranks  []rank       `json:"ranks,omitempty"`
	Own    *report.Rank `json:"own,omitempty"` // the reports of all ranks, added up
	Failed string       `json:"failed,omitempty"`
}

// state has what was measured so far.
type state struct {
	runlog.File[head, run]
}

// of returns the run of a row in a round that did not fail, or nil.
func (s *state) of(row string, m mode, round int) *run {
	for i := range s.Lines {
		if r := &s.Lines[i]; r.Row == row && r.Mode == m && r.Round == round && r.Failed == "" {
			return r
		}
	}
	return nil
}

// Run implements the command run.
func (c *runCmd) Run() error {
	job, program, err := c.prepare()
	if err != nil {
		return err
	}
	h, err := c.head(program)
	if err != nil {
		return err
	}
	var s state
	if err := s.Open(c.Runs, h); err != nil {
		return err
	}
	defer s.Close()
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, unix.SIGINT, unix.SIGTERM)
	for round := range c.Rounds {
		for _, row := range c.Rows {
			for _, m := range order(row, round) {
				if s.of(row, m, round) != nil {
					continue
				}
				r, err := c.once(job, program, row, m)
				if err != nil {
					return err
				}
				if len(stop) > 0 {
					say("interrupted: the same command goes on from here")
					return nil
				}
				r.Row, r.Mode, r.Round = row, m, round
				say("%-6s round %2d, %-7s Pinwheel: %s", row, round+1, m, r)
				if err := s.Add(r); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// prepare compiles the program for the stack.
func (c *runCmd) prepare() (j stack.Job, program string, err error) {
	j.Ranks = ranks
	if j.Device, err = stack.OpenDevice(c.Softverbs); err != nil {
		return j, "", err
	}
	if j.Stack, err = stack.Named(c.Stack); err != nil {
		return j, "", err
	}
	if why := j.Stack.Missing(j.Device); why != "" {
		return j, "", fmt.Errorf("can't measure: %s", why)
	}
	if program, err = filepath.Abs(filepath.Join(c.Out, "quanta."+j.Stack.MPI)); err != nil {
		return j, "", err
	}
	return j, program, j.Stack.Compile(program, source)
}

// order is the order of modes in a round. Without Pinwheel there is nothing to see on an idle processor.
func order(row string, round int) []mode {
	switch {
	case row == "idle":
		return []mode{with}
	case round%2 == 0:
		return []mode{without, with}
	}
	return []mode{with, without}
}

func (c *runCmd) head(program string) (h head, err error) {
	h.Stack = c.Stack
	h.Head, err = runlog.NewHead(c.Bin, nil, filepath.Join(c.Bin, "libpinwheel.so"), filepath.Join(c.Bin, "libpinwheel-go.so"),
		filepath.Join(c.Softverbs, "lib", "libibverbs.so.1"), program)
	return h, err
}

// once runs the job once.
func (c *runCmd) once(j stack.Job, program, row string, m mode) (r run, err error) {
	arguments := []string{fmt.Sprint(8 << 20), fmt.Sprint(c.Steps)}
	if place := places[row]; place != "free" {
		// Each rank has a processor, so it need not yield in a wait.
		j.Program = slices.Concat([]string{program, place}, arguments)
		j.Environ = []string{"OMPI_MCA_mpi_yield_when_idle=0"}
	} else {
		j.Program = slices.Concat([]string{"/usr/bin/taskset", "-c", "0", program, place}, arguments)
		j.Environ = []string{"PINWHEEL_HELPER_CPU=1"}
	}
	r.Load = runlog.Load()
	dir, err := os.MkdirTemp("", "noise")
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(dir) // scratch
	if m == with {
		command, err := filepath.Abs(filepath.Join(c.Bin, "pinwheel"))
		if err != nil {
			return r, err
		}
		j.Under = []string{command, "run", "--"}
		j.Environ = append(j.Environ, "PINWHEEL_STATS="+filepath.Join(dir, "%r.json"))
	}
	res, err := j.Run(c.Limit)
	if err != nil {
		return r, err
	}
	if res.Late || res.Status != 0 || !strings.Contains(res.Output, "data right") {
		r.Failed = fmt.Sprintf("status %d: %s", res.Status, strings.Join(strings.Fields(res.Output), " "))
		return r, nil
	}
	r.Ranks = measuredBy(res.Output)
	if len(r.Ranks) != ranks {
		r.Failed = fmt.Sprintf("%d of %d ranks told what they measured", len(r.Ranks), ranks)
	}
	if m == with {
		reports, _ := filepath.Glob(filepath.Join(dir, "*.json")) // the pattern is good
		job, err := jobreport.Read(reports)
		if err != nil {
			r.Failed = err.Error()
			return r, nil
		}
		total := job.Total()
		r.Own = &total
	}
	return r, nil
}

// measuredBy returns what the ranks measured, from the output of the job.
func measuredBy(output string) (all []rank) {
	for line := range strings.Lines(output) {
		var r rank
		if strings.HasPrefix(line, "{") && json.Unmarshal([]byte(line), &r) == nil {
			all = append(all, r)
		}
	}
	return all
}

// String says it for people.
func (r run) String() string {
	if r.Failed != "" {
		return "FAILED: " + r.Failed
	}
	var q figures
	for _, each := range r.Ranks {
		q.N += each.Quanta.N
		q.SumNs += each.Quanta.SumNs
		q.LeastNs += each.Quanta.LeastNs * float64(each.Quanta.N)
	}
	text := fmt.Sprintf("%d quanta, %.2f %% over the least", q.N, 100*(q.SumNs/q.LeastNs-1))
	if r.Own != nil {
		text += fmt.Sprintf("; %d registrations ahead, %d deregistrations, %d of both in waits", r.Own.HelperRegs,
			r.Own.HelperDeregs, r.Own.InWaits)
	}
	return text
}
