// Prepare measures what it takes to register a large pool: at once, when its pages are there, and by Manager.Prepare. It
// is what make bench-prepare runs.
//
// Each measurement is a line of a file, from which the table is made, and from which it goes on where an earlier one of the
// same build was interrupted.
package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"pinwheel/internal/machine"
	"pinwheel/internal/markers"
	"pinwheel/internal/tools/command"
	"pinwheel/internal/version"
	"pinwheel/lab/kit"
	"pinwheel/mem"
)

type cli struct {
	Run   runCmd   `cmd:"" help:"Measure, or go on measuring."`
	Table tableCmd `cmd:"" help:"Write the table of what was measured into a document, between its markers."`
}

type runCmd struct {
	Runs    string        `default:"results/prepare/runs.jsonl" help:"What was measured, a line for each run."`
	Rounds  int           `default:"5" help:"Rounds of all rows, one after the other."`
	Sizes   command.Names `default:"1G,4G,8G,16G" help:"Sizes of the pool. Those that leave less than 4 GiB of the machine's memory are left out."`
	Devices command.Names `default:"uring,rdma" help:"Providers."`

	Patience time.Duration `default:"10m" help:"Longest time, in all, to wait for others who use the processors, and to measure again what they have disturbed."`
}

type tableCmd struct {
	Runs string `default:"results/prepare/runs.jsonl" help:"What was measured."`
	Into string `default:"results/prepare/README.md" help:"The document."`
}

func main() { command.Main(spec()) }

func spec() command.Spec {
	return command.Spec{
		Name: "prepare", Description: "What it takes to register a large pool.", Declarations: func(string) any { return &cli{} },
	}
}

// leastLeft is the memory that stays free on the machine.
const leastLeft = 4 << 30

// Run implements the command run.
func (c *runCmd) Run() (err error) {
	h, err := kit.NewHead(version.String(), nil, "/proc/self/exe")
	if err != nil {
		return err
	}
	var all runs
	if err := all.Open(c.Runs, h); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, all.Close()) }()
	for round := range c.Rounds {
		for _, s := range c.Sizes {
			n, err := mem.ParseBytes(s)
			if err != nil {
				return err
			}
			if err := c.round(&all, round, n); err != nil {
				return fmt.Errorf("round %d, %s: %w", round+1, s, err)
			}
		}
	}
	return nil
}

// round measures one round of the rows of one size.
func (c *runCmd) round(all *runs, round int, n int64) error {
	free, err := machine.Bytes(os.DirFS("/"), "proc/meminfo", "MemAvailable")
	if err != nil {
		return err
	}
	if n > free-leastLeft {
		fmt.Fprintf(os.Stderr, "prepare: round %d, %s left out: %s are free\n", round+1, mem.FormatBytes(uint64(n)), mem.FormatBytes(uint64(free)))
		return nil
	}
	for _, huge := range []bool{false, true} {
		for _, device := range c.Devices {
			for i := range ways {
				way := ways[(i+round)%len(ways)] // none always comes first
				r := row{Device: device, Huge: huge, Bytes: n, Way: way.name, Round: round}
				if all.has(r) {
					continue
				}
				if r, err = c.undisturbed(r, way); err != nil {
					return fmt.Errorf("%s, %s: %w", device, way.name, err)
				}
				if err := all.Add(r); err != nil {
					return err
				}
			}
		}
	}
	fmt.Fprintf(os.Stderr, "prepare: round %d, %s\n", round+1, mem.FormatBytes(uint64(n)))
	return nil
}

// mostOthers is how many processors others may use before a measurement counts as disturbed.
const mostOthers = .2

// undisturbed measures while others leave the processors alone, as far as patience goes.
func (c *runCmd) undisturbed(r row, w way) (row, error) {
	for {
		waiting := time.Now()
		for c.Patience > time.Since(waiting) && others(500*time.Millisecond) > mostOthers {
		}
		c.Patience -= time.Since(waiting)
		began := time.Now()
		measured, err := twice(r, w)
		if err != nil || measured.Others <= mostOthers || c.Patience <= 0 {
			return measured, err
		}
		c.Patience -= time.Since(began)
	}
}

var table = markers.Markers{Begin: "<!-- begin: make bench-prepare -->\n", End: "<!-- end: make bench-prepare -->\n"}

// Run implements the command table.
func (c *tableCmd) Run() error {
	var all runs
	if err := all.Read(c.Runs); err != nil {
		return err
	}
	if err := all.Head.Publishable(); err != nil {
		return err
	}
	return table.Into(c.Into, all.markdown())
}
