// Command nasreplay replays recorded communication of parallel programs
// through registration policies: with real pinning or in simulated time.
//
// It holds no logic of its own: traces are read by package trace, replayed by
// package replay, costs measured by package verbs/calibrate, figures and
// reports made by package replay/report. See nasreplay --help.
//
// Exit status: 0 if all went well, 1 if a trace or a replay failed (the
// others were still done), 2 for wrong arguments.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/alecthomas/kong"
	"golang.org/x/term"

	"pinwheel/internal/outfile"
	"pinwheel/internal/version"
	"pinwheel/results/calibration"
)

const (
	exitFailed = 1
	exitUsage  = 2
)

type cli struct {
	Import    importCmd        `cmd:"" help:"Convert the recorder's CSV to a .pwt trace."`
	Merge     mergeCmd         `cmd:"" help:"Put traces of single ranks of one run into one trace."`
	Info      infoCmd          `cmd:"" help:"Say what is in traces: buffers, call sites, sizes, periods and their jitter."`
	Compare   compareCmd       `cmd:"" help:"Replay traces under several policies and compare what each pins and costs."`
	Plot      plotCmd          `cmd:"" help:"Draw pinned memory over time, prediction errors or savings as SVG."`
	Calibrate calibrateCmd     `cmd:"" help:"Measure what registration costs on this machine."`
	Results   resultsCmd       `cmd:"" help:"Write the report of results/: tables and figures of every trace and policy."`
	Version   kong.VersionFlag `help:"Print the version and exit."`
}

func main() {
	outfile.RemoveOnSignals()
	os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
}

// usageError is a fault of the arguments that kong can't see.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// run is the whole command.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	e := &env{ctx: ctx, stdout: stdout, stderr: stderr}
	if f, ok := stderr.(*os.File); ok {
		e.terminal = term.IsTerminal(int(f.Fd()))
	}
	exited := false
	parser, err := kong.New(&cli{}, kong.Name("nasreplay"),
		kong.Description("Replay recorded communication through memory registration policies."),
		kong.Vars{"version": "nasreplay " + version.String(), "costs": strings.Join(calibration.Names(), ", ")},
		kong.Writers(stdout, stderr), kong.Exit(func(int) { exited = true }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}))
	if err != nil {
		panic(err) // the declarations above are wrong
	}
	k, err := parser.Parse(args)
	if exited { // --help or --version
		return 0
	}
	if err != nil {
		e.complain(usagef("%w (see nasreplay --help)", err))
		return e.status
	}
	err = k.Run(e)
	if err != nil {
		e.complain(err)
	}
	return e.status
}

// env is what a subcommand works with.
type env struct {
	ctx            context.Context
	stdout, stderr io.Writer
	terminal       bool // stderr is one
	status         int  // to exit with
}

// complain prints one line; the command will exit with a failure. Wrong
// arguments go before what failed of a single trace.
func (e *env) complain(err error) {
	if errors.As(err, new(usageError)) {
		e.status = exitUsage
	}
	e.status = max(e.status, exitFailed)
	e.note("%v", err)
}

// note prints one line that is no failure.
func (e *env) note(format string, args ...any) {
	msg := strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", "; ")
	fmt.Fprintf(e.stderr, "nasreplay: %s\n", msg)
}
