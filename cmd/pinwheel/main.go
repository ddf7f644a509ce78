// Command pinwheel starts programs under Pinwheel, records them, watches them, and
// says what Pinwheel can do on a machine.
//
// It holds no logic of its own: commands are rewritten by package
// internal/tools/launch, traces collected by internal/tools/record, ranks watched by internal/tools/top
// and internal/tools/metrics, processes brought together by comm/vmmc/broker, machines examined by
// internal/tools/doctor and measured by comm/vmmc/vmmcbench, files served by package files and copied by
// comm/files/transfer, settings listed by internal/settings. See pinwheel --help, or pinwheel.1, which is made
// from the same declarations.
//
// Exit status: that of the program for run and record; else 0 if all went
// well, 1 if something failed or, for doctor, is missing. 2 for wrong arguments;
// 126 and 127 as in a shell if the program can't be started or is not found.
package main

//go:generate sh -c "go run . man > pinwheel.1"

import (
	"github.com/alecthomas/kong"

	"pinwheel/internal/tools/command"
	"pinwheel/internal/tools/manpage"
)

const (
	exitCantExec = 126
	exitNotFound = 127
)

type cli struct {
	Run     runCmd     `cmd:"" help:"Run a program or an MPI job with just-in-time memory registration."`
	Record  recordCmd  `cmd:"" help:"Run a program or an MPI job and record its communication, for nasreplay."`
	Report  reportCmd  `cmd:"" help:"Merge the reports of single ranks into one."`
	Top     topCmd     `cmd:"" help:"Watch the ranks on this node: what they have registered, and what their helpers do."`
	Metrics metricsCmd `cmd:"" help:"Give the state of the ranks on this node to Prometheus: as text, in a file, or over HTTP."`
	Node    nodeCmd    `cmd:"" help:"Bring the processes of this machine together that communicate by package vmmc."`
	Watchd  watchdCmd  `cmd:"" help:"Watch the memory mappings of other users' processes for them, which takes privileges."`
	Proxy   proxyCmd   `cmd:"" help:"Carry the connections of unmodified programs over virtual memory-mapped communication."`
	Serve   serveCmd   `cmd:"" help:"Serve the files of a directory over RDMA, TCP or shared memory."`
	Get     getCmd     `cmd:"" help:"Copy files from pinwheel serve."`
	Put     putCmd     `cmd:"" help:"Copy files to pinwheel serve."`
	Ls      lsCmd      `cmd:"" help:"List the files of pinwheel serve."`
	Bench   benchCmd   `cmd:"" help:"Measure what Pinwheel does on this machine."`
	Info    infoCmd    `cmd:"" help:"Show the version, the usable providers, and the settings."`
	Doctor  doctorCmd  `cmd:"" help:"Examine this machine: what Pinwheel will use, why, and what is missing."`
	command.Common
}

func main() { command.Main(spec()) }

func spec() command.Spec {
	return command.Spec{
		Name:        "pinwheel",
		Description: "Just-in-time memory registration for RDMA, under unmodified MPI programs.",
		Declarations: func(subcommand string) any {
			c := &cli{}
			if subcommand == "run" || subcommand == "" {
				c.Run.Plugins, c.Run.settings = settingFlags()
			}
			if subcommand == "record" || subcommand == "" {
				c.Record.Plugins, c.Record.settings = settingFlags("record")
			}
			return c
		},
		Options: []kong.Option{
			kong.ExplicitGroups([]kong.Group{{Key: settingsGroup, Title: "Settings, each for the variable of the same name:"}}),
		},
		Page: manpage.Page{
			ExitStatus: [][2]string{
				{"0", "All went well."},
				{"1", "Something failed; for doctor, something that is needed is missing; for top, there is nothing to see; for bench --claims, one does not hold."},
				{"2", "Wrong arguments."},
				{"126, 127", "The program could not be started, or was not found."},
				{"other", "For run and record, the status of the program; it ends by the signal that ended the program."},
			},
			Files: [][2]string{
				{"libpinwheel.so, libpinwheel-go.so", "What is preloaded, beside this command or in ../lib of its directory."},
				{"/run/pinwheel/node, $XDG_RUNTIME_DIR/pinwheel-node", "Where node serves all users, and one."},
				{"/run/pinwheel/watch.sock", "Where watchd serves."},
				{"libexec/pinwheel/launchers", "mpirun, mpiexec and srun that start the launcher behind them by run; a modulefile puts them into PATH."},
				{"libpinwheel-meter.so", "What run --compare preloads as well, with Pinwheel and without."},
			},
			SeeAlso: []string{"nasreplay(1)", "mpirun(1)", "srun(1)", "ld.so(8)", "ibv_reg_mr(3)", "fi_mr(3)"},
		},
	}
}
