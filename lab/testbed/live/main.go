// Live runs unmodified MPI programs under Pinwheel on the software RDMA device
// (lab/testbed/softverbs), on every MPI stack that package stack knows. It is what
// make test-live, make test-live-all, make test-apps and make soak-live run.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"pinwheel/internal/tools/command"
	"pinwheel/lab/testbed/live/stack"
)

type cli struct {
	Alone bool `hidden:"" help:"This process has a /dev/shm of its own."`

	Test testCmd `cmd:"" help:"Run the programs that verify data under Pinwheel."`
	Apps appsCmd `cmd:"" help:"Run applications in every way, and compare what they compute."`
	Soak soakCmd `cmd:"" help:"Launch programs that end in every way, and kill ranks of some."`
}

// bench is what all commands need.
type bench struct {
	Softverbs string        `default:"out/softverbs" help:"Directory of the device."`
	Pinwheel  string        `default:"bin/pinwheel" help:"The command, with libpinwheel.so beside it."`
	Sources   string        `default:"lab/testbed/programs" help:"Directory of the programs."`
	Out       string        `default:"out/live" help:"Directory for what is compiled and for state files."`
	Stacks    command.Names `default:"openmpi-ucx,mpich-ucx,openmpi-libfabric" help:"MPI stacks."`
	Limit     time.Duration `default:"100s" help:"Longest time of one job."`
}

func main() {
	privateSharedMemory()
	// Crashes that are part of the test leave no core files.
	err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
	if err == nil {
		err = adoptOrphans()
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "live: %v\n", err)
		os.Exit(command.Failed)
	}
	command.Main(spec())
}

func spec() command.Spec {
	return command.Spec{
		Name: "live", Description: "MPI programs under Pinwheel on the software RDMA device.",
		Declarations: func(string) any { return &cli{} },
	}
}

// stacks returns those that can run here, and says why others can't.
func (b bench) stacks() (d stack.Device, stacks []stack.Stack, err error) {
	if d, err = stack.OpenDevice(b.Softverbs); err != nil {
		return d, nil, err
	}
	for _, name := range b.Stacks {
		s, err := stack.Named(name)
		if err != nil {
			return d, nil, err
		}
		if why := s.Missing(d); why != "" {
			say("skipped  %s: %s", name, why)
			continue
		}
		stacks = append(stacks, s)
	}
	return d, stacks, nil
}

// interrupted is closed at the first Ctrl-C or SIGTERM: the job that runs
// comes to its end, and the state file says what has been done.
func interrupted() <-chan os.Signal {
	c := make(chan os.Signal, 1)
	signal.Notify(c, unix.SIGINT, unix.SIGTERM)
	return c
}

// progress shows a bar on standard error if that is a terminal, else nothing.
func progress(total int, what string) *progressbar.ProgressBar {
	return progressbar.NewOptions(total, progressbar.OptionSetDescription(what),
		progressbar.OptionSetWriter(os.Stderr), progressbar.OptionSetVisibility(term.IsTerminal(int(os.Stderr.Fd()))),
		progressbar.OptionShowCount(), progressbar.OptionSetPredictTime(true), progressbar.OptionSetWidth(30),
		progressbar.OptionSetSpinnerChangeInterval(0), progressbar.OptionClearOnFinish())
}
