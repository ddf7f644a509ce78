package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"pinwheel/internal/tools/command"
	"pinwheel/internal/tools/compare"
	plan "pinwheel/internal/tools/launch" // launch is a type of soak.go
	"pinwheel/lab/kit"
	"pinwheel/lab/testbed/live/stack"
)

const (
	appRanks = 2
	appsMPI  = "openmpi" // of which Debian builds all of them
)

type appsCmd struct {
	bench
	Inputs string        `default:"lab/testbed/apps" help:"Directory of the inputs."`
	Only   command.Names `help:"Only these applications."`
}

// appRun is a line of the state file: what came of an application in one way.
type appRun struct {
	App, Stack string
	Run        compare.Run
	Results    []string
}

// appsRun is what is going on.
type appsRun struct {
	appsCmd
	device  stack.Device
	log     kit.Log[kit.Head, appRun]
	stop    <-chan os.Signal
	failed  int
	skipped int
}

// Run runs each application on each stack with the transport's cache, without a cache, and under Pinwheel, and compares
// what it computes. It goes on where it was interrupted.
func (c appsCmd) Run() error {
	a := appsRun{appsCmd: c, stop: interrupted()}
	device, stacks, err := c.stacks()
	if err != nil {
		return err
	}
	a.device = device
	stamp, err := c.stamp(c.Inputs)
	if err != nil {
		return err
	}
	state := filepath.Join(c.Out, "apps.jsonl")
	if err := a.log.Open(state, kit.Head{Build: stamp}); err != nil {
		return err
	}
	defer a.log.Close()
	start := time.Now()
	for _, app := range applications {
		if len(c.Only) > 0 && !slices.Contains(c.Only, app.name) {
			continue
		}
		if why := app.missing(); why != "" {
			say("skipped  %s: %s", app.name, why)
			a.skipped++
			continue
		}
		if err := a.application(app, stacks); err != nil {
			return err
		}
	}
	say("%d failed, %d skipped, %.0f s", a.failed, a.skipped, time.Since(start).Seconds())
	if a.failed > 0 {
		return errFailed
	}
	return os.Remove(state) // the next one begins anew
}

// application runs one on those stacks for which it was built.
func (a *appsRun) application(app application, stacks []stack.Stack) error {
	prepared, err := a.prepare(app)
	if err != nil {
		return err
	}
	for _, s := range stacks {
		if s.MPI != appsMPI {
			continue
		}
		runs := map[compare.Mode]appRun{}
		for _, mode := range compare.Modes {
			r, err := a.once(app, s, mode, prepared)
			if err != nil {
				return fmt.Errorf("%s, %s, %s: %w", app.name, s.Name, mode, err)
			}
			runs[mode] = r
			select {
			case <-a.stop:
				return errInterrupted
			default:
			}
		}
		why := judgeApp(runs)
		if why != "" {
			a.failed++
			say("FAIL     %-9s %s: %s\n%s", app.name, s.Name, why, indented(runs[compare.Pinwheel].Run.Output))
			continue
		}
		say("ok       %-9s %-18s %s", app.name, s.Name, managed(runs))
	}
	return nil
}

// prepare makes what the application needs, in a directory of its own.
func (a *appsRun) prepare(app application) (dir string, err error) {
	if dir, err = filepath.Abs(filepath.Join(a.Out, "apps", app.name)); err != nil {
		return "", err
	}
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(a.Inputs, app.name))); err != nil {
		return "", err
	}
	cmd := exec.Command("sh", "./prepare.sh")
	cmd.Dir = dir
	cmd.Env = slices.Concat(stack.Environ(), app.environ, []string{oneThread})
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", filepath.Join(a.Inputs, app.name, "prepare.sh"), err, indented(string(text)))
	}
	return dir, nil
}

// once runs an application in one way, unless it did that before the command was interrupted.
func (a *appsRun) once(app application, s stack.Stack, mode compare.Mode, prepared string) (appRun, error) {
	for _, r := range a.log.Lines {
		if r.App == app.name && r.Stack == s.Name && r.Run.Mode == mode && r.Run.Failed == "" {
			return r, nil
		}
	}
	dir := prepared + ".run"
	if err := os.RemoveAll(dir); err != nil {
		return appRun{}, err
	}
	if err := os.CopyFS(dir, os.DirFS(prepared)); err != nil {
		return appRun{}, err
	}
	had := lookBefore()
	r := appRun{App: app.name, Stack: s.Name}
	var err error
	if r.Run, err = a.job(app, s, dir).Run(mode, 0); err != nil {
		return r, err
	}
	if left := had.left(); len(left) > 0 && r.Run.Failed == "" {
		r.Run.Failed = "left behind: " + strings.Join(left, ", ")
	}
	if strings.Contains(r.Run.Output, "running without Pinwheel") && r.Run.Failed == "" {
		r.Run.Failed = "it ran without Pinwheel"
	}
	if r.Run.Failed == "" {
		if r.Results, err = app.results(r.Run.Output, dir); err != nil {
			r.Run.Failed = err.Error()
		}
	}
	return r, a.log.Add(r)
}

// job is the application for package compare.
func (a *appsRun) job(app application, s stack.Stack, dir string) compare.Job {
	command, environ := app.job(s, a.device, dir).Command(filepath.Join(dir, "device"))
	within := []string{"env", "-C", dir, "timeout", "-k", "5", fmt.Sprint(a.Limit.Seconds())}
	return compare.Job{Request: plan.Request{
		Command: append(within, command...),
		Environ: environ,
		Library: filepath.Join(filepath.Dir(a.Pinwheel), "libpinwheel.so"),
	}}
}
