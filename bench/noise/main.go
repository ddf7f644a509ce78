// Noise measures what Pinwheel takes from a rank whose processor its helper shares, on the software RDMA
// device (testbed/softverbs): the noise in quanta of fixed work, the length of waits, and how exactly
// registrations begin. It is what make bench-noise, bench-waits and bench-starts run.
package main

import (
	"fmt"
	"os"
	"time"

	"github.com/alecthomas/kong"
)

var cli struct {
	Run   runCmd   `cmd:"" help:"Measure, or go on measuring."`
	Table tableCmd `cmd:"" help:"Write all tables of what was measured, and print one."`
}

// files are those of a measurement.
type files struct {
	Runs string `default:"results/live/noise.jsonl" help:"What was measured, a line for each run."`
}

type runCmd struct {
	files
	Softverbs string        `default:"out/softverbs" help:"Directory of the device."`
	Bin       string        `default:"bin" help:"Directory of the commands and of libpinwheel.so."`
	Out       string        `default:"out/bench-noise" help:"Directory for the program."`
	Stack     string        `default:"openmpi-ucx" help:"MPI stack."`
	Rounds    int           `default:"10" help:"Rounds of all rows."`
	Rows      []string      `default:"shared,auto,idle" enum:"shared,auto,idle" help:"Where helpers run: on the processor of their rank; where PINWHEEL_IDLE_POLICY puts them while all processors are busy; on an idle one."`
	Steps     int           `default:"150" help:"Exchanges of a run."`
	Limit     time.Duration `default:"2m" help:"Longest time of one run."`
}

type tableCmd struct {
	files
	Into  string `default:"results/live/noise.md" help:"The document."`
	Which string `arg:"" enum:"noise,waits,starts" help:"The table to print."`
}

func main() {
	ctx := kong.Parse(&cli, kong.Name("noise"),
		kong.Description("What Pinwheel takes from a rank whose processor its helper shares."))
	ctx.FatalIfErrorf(ctx.Run())
}

func say(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
