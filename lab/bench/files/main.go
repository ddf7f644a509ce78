// Files measures on this machine how files are served: the figures of Dalessandro and Wyckoff, "Memory Management
// Strategies for Data Serving with RDMA" (HotI 2007), with an RDMA device, and what copies of files take beside nginx,
// rsync and plain sendfile(2). It is what make bench-files-figures runs.
//
// A measurement goes on where an earlier one of the same build was interrupted: every row of a round is a line of a
// file, from which the page is made.
package main

import (
	"fmt"
	"os"
	"time"

	"pinwheel/internal/tools/command"
)

type cli struct {
	Run     runCmd     `cmd:"" help:"Measure, or go on measuring."`
	Page    pageCmd    `cmd:"" help:"Write the pages and the figures of what was measured."`
	Guest   guestCmd   `cmd:"" hidden:"" help:"Measure in a guest of the test bed, beside the kernel's NFS server (lab/testbed/nfs.sh)."`
	Receive receiveCmd `cmd:"" hidden:"" help:"Export windows, until standard input ends."`
	Read    readCmd    `cmd:"" hidden:"" help:"Read files of a server, and print how that went."`
}

// where is what commands have in common.
type where struct {
	Runs string `default:"results/files/live.jsonl" help:"What was measured, a line for each row of a round."`
}

type runCmd struct {
	where
	Softverbs string        `default:"out/softverbs" help:"Directory of the device."`
	Bin       string        `default:"bin" help:"Directory of the commands."`
	Dir       string        `default:"/dev/shm" help:"Directory for files that are served and copied. It should be on tmpfs."`
	Rounds    int           `default:"5" help:"Rounds of all rows."`
	Rows      []string      `sep:"none" help:"Patterns of the rows to measure, as path.Match has them. Default: all."`
	Budget    time.Duration `default:"10m" help:"No row begins after this time."`
	Slice     time.Duration `default:"40ms" help:"How long each point is measured in a round, at least."`
	Clients   time.Duration `default:"1m" help:"How long many clients share one budget."`
	Largest   command.Size  `default:"1G" help:"Bytes of the largest file."`
	Small     int           `default:"10000" help:"Small files of the tree."`
	List      bool          `help:"List the rows and measure nothing."`
}

type pageCmd struct {
	where
	Guest string `default:"results/files/nfs.jsonl" help:"What was measured in a guest."`
	Out   string `default:"results/files" help:"Directory for the pages and the figures."`
}

func main() { command.Main(spec()) }

func spec() command.Spec {
	return command.Spec{
		Name: "files", Description: "How files are served on this machine.",
		Declarations: func(string) any { return &cli{} },
	}
}

func say(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
