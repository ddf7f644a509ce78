package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"pinwheel/internal/measure"
	"pinwheel/internal/tools/command"
)

type costCmd struct {
	Mechanisms command.Names `default:"unwatched,tps,tp,pfn,nobody:uffd" help:"Columns; nobody:MECHANISM runs as nobody, where root may."`
	Runs       int           `default:"5" help:"Repetitions, each in a process of its own."`
	Allocators command.Names `default:"glibc,/usr/lib/x86_64-linux-gnu/libjemalloc.so.2,/usr/lib/x86_64-linux-gnu/libmimalloc.so.2" help:"Libraries to preload for the malloc churn; those missing are left out."`
	Softverbs  string        `default:"out/softverbs" help:"Directory of the software device, for libfabric."`
}

// asNobody before a mechanism runs its column unprivileged.
const asNobody = "nobody:"

// Cost is one measured quantity under one mechanism.
type Cost struct {
	Cell
	Cost   string  `json:"cost"`
	Median float64 `json:"median"` // in Unit
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	Unit   string  `json:"unit"`
	// Runs are the values of the runs, in their order.
	Runs []float64 `json:"runs"`
}

// sample is what one run measures.
type sample struct {
	Cost  string
	Unit  string
	Value float64
}

// costTime bounds one run: a deadlock in an allocator or a hook shows here.
const costTime = time.Minute

// Run measures all columns in turn, run by run, so that they can be compared in pairs.
func (c costCmd) Run() error {
	columns := make([]column, len(c.Mechanisms))
	fastest := math.Inf(1)
	for range c.Runs {
		for i, m := range c.Mechanisms {
			for _, allocator := range c.Allocators {
				if allocator != "glibc" {
					if _, err := os.Stat(allocator); err != nil {
						continue
					}
				}
				if err := untilDetached(&fastest); err != nil {
					return err
				}
				samples, err := c.measureIn(m, allocator)
				if err != nil {
					return fmt.Errorf("%s, %s: %w", m, allocator, err)
				}
				columns[i].add(samples)
			}
		}
	}
	out := json.NewEncoder(os.Stdout)
	for i, m := range c.Mechanisms {
		for _, s := range columns[i].order {
			v := columns[i].values[s.Cost]
			l := Cost{Cell: here(), Cost: s.Cost, Median: measure.Median(v), Low: slices.Min(v), High: slices.Max(v), Unit: s.Unit, Runs: v}
			l.Mechanism = m
			if unprivileged, ok := strings.CutPrefix(m, asNobody); ok && os.Getuid() == 0 {
				l.Mechanism, l.User = unprivileged, "nobody"
			}
			l.Mechanism = nameOf(l.Mechanism)
			if err := out.Encode(l); err != nil {
				return err
			}
		}
	}
	return nil
}

// detachTime is more than the kernel takes to detach the programs of all neighbours: some 200 ms for each of theirs.
const detachTime = time.Minute

// untilDetached waits until system calls take no longer than the fastest did: the kernel detaches programs after their
// processes have ended, and until then each system call of the node is traced, that of the next column too.
func untilDetached(fastest *float64) error {
	for begin := time.Now(); ; {
		now := unrelatedCall()
		*fastest = min(*fastest, now)
		switch {
		case now <= 1.25**fastest:
			return nil
		case time.Since(begin) > detachTime:
			return fmt.Errorf("a system call takes %.0f ns, and took %.0f: what else is traced here, or busy?", now, *fastest)
		}
	}
}

// column has what was measured under one mechanism.
type column struct {
	order  []sample // one for each cost
	values map[string][]float64
}

func (c *column) add(samples []sample) {
	if c.values == nil {
		c.values = map[string][]float64{}
	}
	for _, s := range samples {
		if c.values[s.Cost] == nil {
			c.order = append(c.order, s)
		}
		c.values[s.Cost] = append(c.values[s.Cost], s.Value)
	}
}

func (c costCmd) measureIn(column, allocator string) (samples []sample, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), costTime)
	defer cancel()
	mechanism, unprivileged := strings.CutPrefix(column, asNobody)
	cmd := exec.CommandContext(ctx, "/proc/self/exe", "measure", mechanism, allocator)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if unprivileged && os.Getuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
	}
	cmd.WaitDelay = time.Second
	cmd.Stderr = os.Stderr
	cmd.Env = os.Environ()
	if allocator != "glibc" {
		cmd.Env = append(cmd.Env, "LD_PRELOAD="+allocator)
	}
	if strings.HasPrefix(mechanism, libfabric) {
		device, err := softwareDevice(c.Softverbs)
		if err != nil {
			return nil, err
		}
		cmd.Env = append(cmd.Env, device...)
	}
	b, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	return samples, json.Unmarshal(b, &samples)
}
