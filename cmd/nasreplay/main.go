// Command nasreplay replays recorded communication of parallel programs
// through registration policies: with real pinning or in simulated time.
//
// It holds no logic of its own: traces are read by package trace, replayed by
// package replay, costs measured by package verbs/calibrate, figures and
// reports made by package lab/replay/report. See nasreplay --help, or nasreplay.1,
// which is made from the same declarations.
//
// Exit status: 0 if all went well, 1 if a trace or a replay failed (the
// others were still done), 2 for wrong arguments.
package main

//go:generate sh -c "go run . man > nasreplay.1"

import (
	"strings"

	"github.com/alecthomas/kong"

	"pinwheel/internal/tools/command"
	"pinwheel/internal/tools/manpage"
	"pinwheel/lab/replay"
	"pinwheel/lab/replay/report"
	"pinwheel/results/calibration"
)

type cli struct {
	Import     importCmd     `cmd:"" help:"Convert the recorder's CSV to a .pwt trace."`
	Merge      mergeCmd      `cmd:"" help:"Merge the traces of single ranks of one run into one trace."`
	Info       infoCmd       `cmd:"" help:"Show what a trace contains: buffers, call sites, sizes, periods and their jitter."`
	Compare    compareCmd    `cmd:"" help:"Replay traces under several policies and compare how much each pins and costs."`
	Frontier   frontierCmd   `cmd:"" help:"Set what each policy saves against what it costs: policy pinwheel as a curve. A table, a figure, a page."`
	Explain    explainCmd    `cmd:"" help:"Say where the possible saving went: by cause, by region, and use by use of one region."`
	Learn      learnCmd      `cmd:"" help:"Keep what policy pinwheel has learned from a trace, for compare --profile."`
	Scale      scaleCmd      `cmd:"" help:"Replay a run on many more ranks than were recorded, and show what nodes pin."`
	Plot       plotCmd       `cmd:"" help:"Draw pinned memory over time, prediction errors or savings as SVG."`
	Calibrate  calibrateCmd  `cmd:"" help:"Measure what registration costs on this machine."`
	Results    resultsCmd    `cmd:"" help:"Write the report of results/: tables and figures of every trace and policy."`
	Prediction predictionCmd `cmd:"" help:"Report how near policy pinwheel comes to the oracle, what each idea is worth, and what can't be foreseen."`
	Shares     sharesCmd     `cmd:"" help:"Write what helpers save and cost that may use a share of a core."`
	Nodes      nodesCmd      `cmd:"" help:"Write the report on full nodes: shared idle cores, several tasks on a node, thousands of ranks."`
	Files      filesCmd      `cmd:"" help:"Write the report on serving files over RDMA: figures and findings of a paper, in virtual time."`
	Papers     papersCmd     `cmd:"" help:"Write what the papers have, and what we have, from the raw data of other commands."`
	Micro      microCmd      `cmd:"" help:"Replay the microbenchmarks of two papers: bandwidth and pinned memory over the size of messages."`
	command.Common
}

func main() { command.Main(spec()) }

func spec() command.Spec {
	return command.Spec{
		Name:         "nasreplay",
		Description:  "Replay recorded communication through memory registration policies.",
		Declarations: func(string) any { return &cli{} },
		Options: []kong.Option{kong.Vars{
			"costs": strings.Join(calibration.Names(), ", "), "prediction_parts": strings.Join(report.PredictionParts(), ", "),
		}},
		Choices: map[string][]string{"policy": replay.AllPolicies(), "costs": calibration.Names()},
		Page: manpage.Page{
			Environment: [][2]string{
				{"PINWHEEL_RDMA_DEVICE", "RDMA device of provider rdma, as NAME or NAME:PORT. Without it, the first with an active port."},
				{"SOURCE_DATE_EPOCH", "Date of the report that results writes, in seconds since 1970."},
			},
			ExitStatus: [][2]string{
				{"0", "All went well."},
				{"1", "A trace or a replay failed; the others were still done."},
				{"2", "Wrong arguments."},
			},
			SeeAlso: []string{"pinwheel(1)", "pinwheel(3)"},
		},
	}
}
