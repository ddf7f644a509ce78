// Live measures what Pinwheel saves and costs under MPI programs on the software RDMA device (lab/testbed/softverbs), beside
// the transport's own registration cache, none, and other policies. It is what make bench-live runs.
//
// A measurement goes on where an earlier one of the same build was interrupted: every run is a
// line of a file, from which the tables are made. So is a row that can't be measured, with the reason.
package main

import (
	"fmt"
	"os"
	"time"

	"pinwheel/internal/tools/command"
)

type cli struct {
	Run   runCmd   `cmd:"" help:"Measure, or go on measuring."`
	Paper paperCmd `cmd:"" help:"Write the page of the microbenchmarks of papers, of what was measured."`
	Table tableCmd `cmd:"" help:"Write the tables of what was measured into a document, between its markers."`

	Headlines headlinesCmd `cmd:"" help:"Write the page of ten numbers, of what was measured."`
}

// files are those of a measurement.
type files struct {
	Runs string `default:"results/live/runs.jsonl" help:"What was measured, a line for each run."`
}

type runCmd struct {
	files
	Softverbs string        `default:"out/softverbs" help:"Directory of the device."`
	Bin       string        `default:"bin" help:"Directory of the commands and of libpinwheel.so."`
	Out       string        `default:"out/bench-live" help:"Directory for programs and traces."`
	NPB       string        `help:"Directory with openmpi/ft.B.x and so on, or ft.B.x, of NPB 3.4-MPI."`
	Rounds    int           `default:"10" help:"Rounds of all rows."`
	Rows      patterns      `sep:" " help:"Patterns of the rows to measure, as path.Match has them. Default: all but the microbenchmarks of papers."`
	Budget    time.Duration `default:"2h" help:"No run begins after this time."`
	Limit     time.Duration `default:"5m" help:"Longest time of one run."`
	List      bool          `help:"List the rows and measure nothing."`
}

type tableCmd struct {
	files
	Into   string `default:"results/live/README.md" help:"The document."`
	Readme string `placeholder:"FILE" help:"Another document, for the headline: one job with an idle core and without one."`
}

func main() { command.Main(spec()) }

func spec() command.Spec {
	return command.Spec{
		Name: "live", Description: "What Pinwheel saves and costs, on the software RDMA device.",
		Declarations: func(string) any { return &cli{} },
	}
}

func say(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
