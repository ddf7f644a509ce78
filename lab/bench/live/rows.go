package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"pinwheel/internal/tools/command"
	"pinwheel/internal/tools/compare"
	"pinwheel/lab/kit"
	"pinwheel/lab/testbed/live/stack"
	"pinwheel/mem"
)

// row is a job that is measured in every mode.
type row struct {
	stack string
	// program is one of NPB, such as ft.B; a pattern of phases.c and its MiB, such as halo.8; latency.c, or overlap.c
	// with buffers that are reused or fresh, and the size of its messages, such as latency.17K; or lammps.
	program string
	ranks   int
	// idle binds all ranks to processor 0, where they yield to each other, and the helpers to
	// processor 1: there is an idle processor.
	idle bool
	// slow is a device on which a registration costs what UCX assumes of an adapter (verbs.DefaultCosts).
	slow bool
	// watch is how mappings are watched, as PINWHEEL_WATCH: uffd, since tracepoints, which BPF takes where fentry is missing,
	// cost every system call of the node, and the device makes many (see results/live); or none, where the transport
	// keeps its cache. Empty: as the kernel and the user's rights allow.
	watch string
	// bounce has the transport copy messages of any size through buffers of its own, where it has its cache; there are no
	// other modes.
	bounce bool
}

func (r row) String() string {
	name := fmt.Sprintf("%s/%s.%d", r.stack, r.program, r.ranks)
	if r.idle {
		name += ".idle"
	}
	if r.slow {
		name += ".slow"
	}
	if r.watch != "" {
		name += "." + r.watch
	}
	if r.bounce {
		name += ".bounce"
	}
	return name
}

const (
	ucx       = "openmpi-ucx"
	libfabric = "openmpi-libfabric"
	mpichUCX  = "mpich-ucx"
)

// allRows are measured if their programs and stacks are there: those of NPB, then our own.
var allRows = []row{
	{stack: ucx, program: "ft.B", ranks: 2}, {stack: ucx, program: "is.B", ranks: 2},
	{stack: ucx, program: "mg.B", ranks: 2},
	{stack: ucx, program: "cg.A", ranks: 2}, {stack: ucx, program: "lu.A", ranks: 2},
	{stack: ucx, program: "ft.A", ranks: 4}, {stack: ucx, program: "bt.A", ranks: 4},
	{stack: ucx, program: "sp.A", ranks: 4},
	{stack: ucx, program: "ft.A", ranks: 2, idle: true}, {stack: ucx, program: "ft.B", ranks: 2, slow: true},
	{stack: libfabric, program: "ft.B", ranks: 2}, {stack: mpichUCX, program: "ft.B", ranks: 2},

	{stack: ucx, program: "ring.8", ranks: 2}, {stack: ucx, program: "ring.32", ranks: 2},
	{stack: ucx, program: "halo.8", ranks: 2}, {stack: ucx, program: "halo.32", ranks: 2},
	{stack: ucx, program: "transpose.8", ranks: 2}, {stack: ucx, program: "transpose.32", ranks: 2},
	{stack: ucx, program: "alltoall.8", ranks: 2}, {stack: ucx, program: "alltoall.32", ranks: 2},
	{stack: ucx, program: "halo.8", ranks: 4},
	{stack: ucx, program: "halo.8", ranks: 2, idle: true}, {stack: ucx, program: "transpose.8", ranks: 2, idle: true},
	{stack: ucx, program: "ring.32", ranks: 2, slow: true}, {stack: ucx, program: "halo.8", ranks: 2, slow: true},
	{stack: ucx, program: "halo.8", ranks: 2, idle: true, slow: true},
	{stack: ucx, program: "halo.8", ranks: 2, idle: true, watch: "uffd"},
	{stack: ucx, program: "halo.8", ranks: 2, idle: true, watch: "none"},
	{stack: libfabric, program: "transpose.8", ranks: 2}, {stack: libfabric, program: "halo.8", ranks: 2},
	{stack: mpichUCX, program: "transpose.8", ranks: 2},

	// In these Pinwheel can save nothing, and should cost nothing: messages below its threshold, messages just above it
	// from buffers that are always in use, and an application that sends little.
	{stack: ucx, program: "latency.8B", ranks: 2}, {stack: ucx, program: "latency.17K", ranks: 2},
	{stack: ucx, program: "latency.17K", ranks: 2, idle: true},
	{stack: ucx, program: "latency.17K", ranks: 2, idle: true, watch: "uffd"}, {stack: ucx, program: "lammps", ranks: 2},
}

// paperRows are the microbenchmarks of papers, over the size of messages. They are measured if they are asked for.
var paperRows = func() (rows []row) {
	for _, size := range []string{"64K", "256K", "1M", "4M", "16M", "64M"} {
		for _, program := range []string{"reused.", "fresh.", "latency."} {
			if program == "latency." && size == "64M" {
				continue // takes as long as all others
			}
			r := row{stack: ucx, program: program + size, ranks: 2, idle: true}
			rows = append(rows, r)
			r.bounce = true
			rows = append(rows, r)
		}
	}
	return rows
}()

// paperModes are those of paperRows: the path of each use is measured without a helper, too.
var paperModes = append([]compare.Mode{compare.LeavePinned}, compare.AllModes...)

// modes are those that a row is measured in.
func (r row) modes() []compare.Mode {
	switch {
	case r.bounce:
		return []compare.Mode{compare.Cache}
	case slices.Contains(paperRows, r):
		return paperModes
	}
	return compare.AllModes
}

// patterns are a list, by spaces, of what rows are called.
type patterns []string

// Decode implements kong.MapperValue.
func (l *patterns) Decode(ctx *kong.DecodeContext) error {
	text, err := command.PopText(ctx, "list")
	*l = append(*l, strings.Split(text, " ")...)
	return err
}

// chosen returns the rows that the options ask for.
func (c *runCmd) chosen() ([]row, error) {
	if len(c.Rows) == 0 {
		return allRows, nil
	}
	return kit.Choose(slices.Concat(allRows, paperRows), row.String, c.Rows)
}

const (
	steps  = 60
	passes = 500   // of a compute phase: some 45 ms
	blocks = 2_000 // of 100 exchanges of small messages

	overlapRounds = 10 // as in the paper
	overlapMs     = 50 // of computing after each message

	phases  = "lab/bench/live/programs/phases.c"
	latency = "lab/testbed/programs/latency.c"
	overlap = "lab/bench/live/programs/overlap.c"
	lammps  = "lab/bench/live/programs/lammps.in"
)

// own returns the source of the row's program, if it is one of ours, and its arguments.
func (r row) own() (source string, arguments []any) {
	program, size, _ := strings.Cut(r.program, ".")
	bytes, err := mem.ParseBytes(size)
	switch {
	case err == nil && program == "latency":
		return latency, []any{min(blocks, max(10, blocks*(32<<10)/bytes)), bytes}
	case err == nil && (program == "reused" || program == "fresh"):
		return overlap, []any{program, bytes, overlapRounds, overlapMs}
	}
	if mib, err := strconv.Atoi(size); err == nil {
		return phases, []any{program, mib << 20, steps, passes}
	}
	return "", nil
}

// command returns the row's program and its arguments. missing says why there is none.
func (c *runCmd) command(r row, s stack.Stack) (command []string, missing string, err error) {
	if source, arguments := r.own(); source != "" {
		name := strings.TrimSuffix(filepath.Base(source), ".c")
		program, err := filepath.Abs(filepath.Join(c.Out, name+"."+s.MPI))
		if err != nil {
			return nil, "", err
		}
		command = []string{program}
		for _, a := range arguments {
			command = append(command, fmt.Sprint(a))
		}
		return command, "", s.Compile(program, source)
	}
	if r.program == "lammps" {
		return installed("lmp", "-in", lammps, "-log", "none")
	}
	if c.NPB == "" {
		return nil, "NPB 3.4-MPI is not part of Pinwheel (NPB=DIR has its programs)", nil
	}
	names := []string{filepath.Join(c.NPB, s.MPI, r.program+".x")}
	if s.MPI == "openmpi" {
		names = append(names, filepath.Join(c.NPB, r.program+".x"))
	}
	for _, name := range names {
		if _, err := os.Stat(name); err == nil {
			name, err = filepath.Abs(name)
			return []string{name}, "", err
		}
	}
	return nil, fmt.Sprintf("there is no %s (NPB 3.4-MPI: make %s CLASS=%s)", names[0], r.program[:2], r.program[3:]), nil
}

// installed returns the command of an installed program.
func installed(name string, arguments ...string) (command []string, missing string, err error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return nil, fmt.Sprintf("%v (make install-bench-live)", err), nil
	}
	return append([]string{path}, arguments...), "", nil
}
