package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"os/user"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"pinwheel/internal/measure"
	"pinwheel/internal/tools/compare"
	"pinwheel/internal/tools/launch"
	"pinwheel/lab/kit"
	"pinwheel/lab/testbed/live/stack"
)

// measurement is what is going on.
type measurement struct {
	*runCmd
	device stack.Device
	state  state
	rows   []row
	user   string
	jobs   map[row]compare.Job
	limits kit.Limits
	ctx    context.Context // ends with Ctrl-C or SIGTERM, which the run that goes on gets as well
}

// Run implements the command run.
func (c *runCmd) Run() error {
	rows, err := c.chosen()
	if err != nil {
		return err
	}
	if c.List {
		for _, r := range rows {
			fmt.Println(r)
		}
		return nil
	}
	m := &measurement{runCmd: c, user: userName(), jobs: map[row]compare.Job{}, limits: kit.Limits{Began: time.Now(), Budget: c.Budget}}
	var stop context.CancelFunc
	m.ctx, stop = signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM)
	defer stop()
	if m.device, err = stack.OpenDevice(c.Softverbs); err != nil {
		return err
	}
	if err := os.MkdirAll(c.Out, 0o777); err != nil {
		return err
	}
	h, err := c.head(m.device)
	if err != nil {
		return err
	}
	if err := m.state.Open(c.Runs, h); err != nil {
		return err
	}
	defer m.state.Close()
	if err := m.prepare(rows); err != nil {
		return err
	}
	if len(m.rows) == 0 {
		return errors.New("nothing that these rows need is here")
	}
	return m.rounds()
}

// prepare makes the jobs of the rows that can be measured here, and notes which can't.
func (m *measurement) prepare(rows []row) error {
	var left leftOut
	for _, r := range rows {
		j, missing, err := m.job(r, m.device)
		if err != nil {
			return fmt.Errorf("%s: %w", r, err)
		}
		if missing == "" {
			m.rows, m.jobs[r] = append(m.rows, r), j
			continue
		}
		left.add(missing, r.String())
		if err := m.state.leaveOut(r.String(), missing); err != nil {
			return err
		}
	}
	for _, line := range left.lines() {
		say("left out: %s", line)
	}
	return nil
}

// userName is who measures: rights decide how changes of mappings are noticed.
func userName() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return fmt.Sprint("user ", os.Getuid())
}

// head describes the measurement.
func (c *runCmd) head(d stack.Device) (kit.Head, error) {
	return kit.NewHead(kit.VersionIn(c.Bin), []string{"openmpi-bin", "mpich", "libucx0", "libfabric1"},
		filepath.Join(c.Bin, "libpinwheel.so"), filepath.Join(c.Bin, "libpinwheel-go.so"),
		filepath.Join(c.Bin, launch.Meter), filepath.Join(c.Softverbs, "lib", "libibverbs.so.1"), phases, latency, overlap, lammps)
}

// rounds measures all rows in turn, round by round.
func (m *measurement) rounds() error {
	for round := range m.Rounds {
		for _, r := range m.rows {
			for _, mode := range compare.Order(r.modes(), round) {
				if m.state.has(m.key(r), mode, round) {
					continue
				}
				if why := m.limits.Over(m.ctx); why != "" {
					say("%s: the same command goes on from here", why)
					return nil
				}
				if err := m.once(r, mode, round); err != nil {
					return err
				}
			}
			if err := m.replayOnce(r); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *measurement) key(r row) key { return key{r.String(), m.user} }

// once measures one run.
func (m *measurement) once(r row, mode compare.Mode, round int) error {
	l := line{key: m.key(r), Load: measure.Load()}
	run, err := m.jobs[r].Run(mode, round)
	if err != nil {
		return fmt.Errorf("%s: %w", r, err)
	}
	if m.ctx.Err() != nil {
		return nil // it may have been cut short
	}
	judge(&run)
	l.Run, l.MessageNs = &run, messageNs(run.Output)
	if run.Failed != "" {
		say("FAILED   %s, round %d, %s: %s", r, round+1, mode, run.Failed)
	} else {
		say("%-36s round %2d  %-21s %7.2f s  %10s pinned  %9s of processor time", r, round+1, mode, run.Seconds,
			compare.Bytes(run.AvgPinnedBytes), compare.Seconds(run.CPUNs))
	}
	return m.state.Add(l)
}

// command runs one of ours.
func (m *measurement) command(environ []string, name string, args ...string) ([]byte, error) {
	cmd := exec.Command(filepath.Join(m.Bin, name), args...)
	cmd.Env = environ
	out, err := cmd.Output()
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(exit.Stderr))
	}
	if err != nil {
		err = fmt.Errorf("%s %s: %w", name, args[0], err)
	}
	return out, err
}
