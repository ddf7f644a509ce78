package main

import (
	"pinwheel/internal/tools/command"
	"pinwheel/internal/tools/doctor"
)

type doctorCmd struct {
	JSON    bool   `name:"json" help:"Print one JSON object."`
	Library string `placeholder:"FILE" help:"libpinwheel.so to look for. Default: the one installed with this command."`
}

func (doctorCmd) Help() string {
	return `Examines devices, limits, the kernel, processors and transports. Says what Pinwheel will use, and why. A line with - works less well
than it could. A line with ! is a problem, and the exit status is then 1. An arrow says what to do. Run doctor where the job runs: a
batch job often has other limits and processors than a login shell.

Examples:
  pinwheel doctor
  srun -N 1 -n 1 pinwheel doctor --json > ticket.json`
}

func (c *doctorCmd) Run(e *command.Env) error {
	r := doctor.Examine(doctor.This(c.Library))
	if !r.Usable {
		e.Fail()
	}
	if c.JSON {
		return r.WriteJSON(e.Stdout)
	}
	return r.WriteText(e.Stdout)
}
