package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"pinwheel/internal/tools/compare"
	"pinwheel/internal/tools/launch"
	"pinwheel/lab/testbed/live/stack"
	"pinwheel/verbs"
)

// oneRegistration keeps UCX from making two registrations of each buffer, as it does by itself on some processors of
// AMD (ucs_cpu_prefer_relaxed_order): figures of two machines could not be compared.
const oneRegistration = "UCX_IB_PCI_RELAXED_ORDERING=off"

// bound are the commands that bind the ranks of an idle row, and the setting that binds its helpers.
var (
	bound       = []string{"/usr/bin/taskset", "-c", "0"}
	helperBound = "PINWHEEL_HELPER_CPU=1"
)

// slowDevice are the settings of the device of a slow row.
func slowDevice() []string {
	setting := func(name string, c verbs.Cost) string {
		return fmt.Sprintf("%s=%d,%d", name, int64(c.FixedNs), int64(c.PerPageNs))
	}
	return []string{setting("SOFTVERBS_REGISTER", verbs.DefaultCosts.Register),
		setting("SOFTVERBS_DEREGISTER", verbs.DefaultCosts.Deregister)}
}

// job returns the row's job for package compare. missing says in one line why it can't run here.
func (c *runCmd) job(r row, d stack.Device) (j compare.Job, missing string, err error) {
	s, err := stack.Named(r.stack)
	if err != nil {
		return j, "", err
	}
	if missing = s.Missing(d); missing != "" {
		return j, missing, nil
	}
	program, missing, err := c.command(r, s)
	if missing != "" || err != nil {
		return j, missing, err
	}
	on := stack.Job{Stack: s, Device: d, Ranks: r.ranks, Program: program, Environ: []string{oneRegistration}}
	if r.idle {
		on.Program, on.Environ = slices.Concat(bound, program), append(on.Environ, helperBound)
	}
	if r.slow {
		on.Environ = append(on.Environ, slowDevice()...)
	}
	if r.watch != "" {
		on.Environ = append(on.Environ, "PINWHEEL_WATCH="+r.watch)
	}
	if slices.Contains(paperRows, r) {
		on.Environ = append(on.Environ, "PINWHEEL_WATCH_WAIT=y") // or the few messages are over before changes are noticed
	}
	if r.bounce {
		on.Environ = append(on.Environ, "UCX_RNDV_THRESH=inf", "UCX_ZCOPY_THRESH=inf")
	}
	out, err := filepath.Abs(c.Out)
	if err != nil {
		return j, "", err
	}
	command, environ := on.Command(filepath.Join(out, "device"))
	j.Request = launch.Request{
		Command: slices.Concat([]string{"timeout", "-k", "5", fmt.Sprint(c.Limit.Seconds())}, command),
		Environ: environ,
		Library: filepath.Join(c.Bin, "libpinwheel.so"),
	}
	return j, "", nil
}

// verified are what the programs say if their data was right: our own, those of NPB, and LAMMPS, which ends with
// an error if it loses atoms.
var verified = []string{"data right", "SUCCESSFUL", "Total wall time"}

// judge makes a run a failed one if its data was wrong, or if it did not use the device.
func judge(run *compare.Run) {
	right := slices.ContainsFunc(verified, func(says string) bool { return strings.Contains(run.Output, says) })
	switch {
	case run.Failed != "":
	case !right || strings.Contains(run.Output, "UNSUCCESSFUL"):
		run.Failed = "the program did not verify its data"
	case run.Sampled < run.Ranks || run.PeakBytes == 0:
		run.Failed = "no memory was pinned: the job did not use the device"
	}
}
