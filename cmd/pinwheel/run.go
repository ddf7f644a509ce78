package main

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"pinwheel/internal/outfile"
	"pinwheel/internal/settings"
	"pinwheel/internal/tools/command"
	"pinwheel/internal/tools/jobreport"
	"pinwheel/internal/tools/launch"
)

// job are the options of the commands that start a program.
type job struct {
	Library    string `placeholder:"FILE" help:"libpinwheel.so to preload. Default: the one installed with this command."`
	KeepCaches bool   `help:"Leave the registration caches of libfabric, UCX and Open MPI on."`
	kong.Plugins
	Command []string `arg:"" passthrough:"partial" help:"Program or MPI launcher, with its arguments."`

	settings func() ([]string, error)
}

type runCmd struct {
	Report toggle `placeholder:"FILE" help:"Print one report of all ranks when the job has ended, to standard error or into FILE. A page with charts if that ends in .html. Directories of FILE that are missing are made."`
	comparison
	job
}

func (runCmd) Help() string {
	return `Starts the command so that only the ranks of an MPI job load libpinwheel.so, and turns off the transport's own registration cache.
It knows mpirun and mpiexec of Open MPI, MPICH and Intel MPI, and srun. A program without a launcher loads the library itself. So any
other launcher works this way: LAUNCHER pinwheel run -- ./app. Wrappers such as env, timeout, nice, taskset and numactl may stand before
the launcher. If something is in the way, run prints one line that says what, and runs the command without Pinwheel. Exit status and
signals are those of the command.

With --compare, run starts the job several times: with the transport's registration cache, with none, and with Pinwheel, in turn. It
prints how much memory the ranks pin and what they take, and a verdict. What the job prints is shown only if it fails.

The verdict goes by pinned memory, processor time and run time, each with its 95 % interval: run the job with Pinwheel if that takes
less of something and more of nothing than either of the other ways. Leave it out if another way does so, takes no more, or if no
registration went through Pinwheel. If Pinwheel takes less of one and more of another, it is a trade. As long as an interval has both
more and less in it, there is no verdict. SIGINT (Ctrl-C), SIGTERM and SIGHUP end the job, and the rounds that were finished are
compared; then run ends by that signal. So are the rounds before a run that failed; then run ends with status 1.

Examples:
  pinwheel run -- mpirun -n 4 ./app
  pinwheel run --policy paper --budget 256M --report -- srun -n 64 ./app input
  pinwheel run --profile -- mpirun -n 4 ./app
  pinwheel run --profile=/scratch/me/profiles -- srun -n 64 ./app input
  pinwheel run --compare --rounds 10 -- mpirun -n 4 ./app
  pinwheel run --stats=stats.%j.%r.json -- mpiexec.hydra -n 8 ./app
  aprun -n 8 pinwheel run -- ./app`
}

func (c *runCmd) Run(e *command.Env) error {
	r, s, err := c.request(e)
	if err != nil {
		return err
	}
	if c.Compare {
		return c.compare(e, r, s)
	}
	if err := c.comparison.check(); err != nil {
		return err
	}
	if s.Disable {
		r.KeepCaches = true // as if Pinwheel were not there
	}
	if c.Report == "" {
		return c.exec(e, r)
	}
	if s.Stats != "n" {
		return command.Usagef("--report makes use of PINWHEEL_STATS, which is %s", s.Stats)
	}
	if c.Report != "y" {
		if err := outfile.Check(string(c.Report)); err != nil { // before the job
			return command.Usagef("--report: %w", err)
		}
	}
	dir, err := reportDir(r)
	if err != nil { // the job matters more
		e.Note("no report: %v", err)
		return c.exec(e, r)
	}
	r.Settings = append(r.Settings, "PINWHEEL_STATS="+dir.Pattern())
	p, err := c.plan(e, r)
	if err != nil || p.Plain != "" {
		_ = dir.Remove() // this process puts nothing into it
		if err == nil {
			err = cantStart(p.Exec())
		}
		return err
	}
	return runAndReport(e, p, dir, string(c.Report))
}

// exec makes this process the command.
func (j *job) exec(e *command.Env, r launch.Request) error {
	p, err := j.plan(e, r)
	if err != nil {
		return err
	}
	return cantStart(p.Exec())
}

// reportDir is where the ranks put their reports. A process that a launcher has started for one rank
// (srun pinwheel run -- ./app) shares it with those of the other ranks.
func reportDir(r launch.Request) (jobreport.Dir, error) {
	if step := settings.Step(); step != "" && !launch.StartsRanks(r.Command, r.Environ) {
		if dir, err := jobreport.JoinDir(step); err == nil {
			return dir, nil
		}
	}
	return jobreport.NewDir()
}

// request says what the options ask for, and what is in force with the environment.
func (j *job) request(e *command.Env) (launch.Request, settings.Settings, error) {
	given, err := j.settings()
	if err != nil {
		return launch.Request{}, settings.Settings{}, err
	}
	if j.Command[0] == "--" {
		j.Command = j.Command[1:]
	}
	if len(j.Command) == 0 {
		return launch.Request{}, settings.Settings{}, command.Usagef("there is no command to run")
	}
	if err := launch.LeaveOutStandIns(); err != nil {
		return launch.Request{}, settings.Settings{}, err
	}
	environ := os.Environ()
	s, warnings := settings.Load(slices.Concat(environ, given))
	if s.Log != "off" {
		for _, w := range warnings {
			e.Note("%s", w)
		}
	}
	if s.Profile == "y" { // the ranks may lack XDG_STATE_HOME
		dir, err := s.ProfileDir()
		if err != nil {
			return launch.Request{}, s, command.Usagef("--profile: %w", err)
		}
		const name = "PINWHEEL_PROFILE="
		given = append(slices.DeleteFunc(given, func(v string) bool { return strings.HasPrefix(v, name) }), name+dir)
	}
	return launch.Request{Command: j.Command, Environ: environ, Library: j.Library, Settings: given, KeepCaches: j.KeepCaches}, s, nil
}

// plan decides how to start the job and says what the user should know of it.
func (j *job) plan(e *command.Env, r launch.Request) (launch.Plan, error) {
	p, err := launch.Make(r)
	if err != nil {
		return p, cantStart(err)
	}
	for _, n := range p.Notes {
		e.Note("%s", n)
	}
	if p.Plain != "" {
		e.Note("%s; running without Pinwheel", p.Plain)
	}
	return p, nil
}

// cantStart gives an error the status that a shell gives it.
func cantStart(err error) error {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return command.WithStatus(err, exitNotFound)
	}
	return command.WithStatus(err, exitCantExec)
}
