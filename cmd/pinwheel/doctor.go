package main

import (
	"pinwheel/internal/command"
	"pinwheel/internal/doctor"
)

type doctorCmd struct {
	JSON    bool   `name:"json" help:"Print one JSON object."`
	Library string `placeholder:"FILE" help:"libpinwheel.so to look for. Default: the one installed with this command."`
}

func (doctorCmd) Help() string {
	return `Examines devices, limits, the kernel, processors and transports, and says what Pinwheel will use and why. Lines with - work less well
than they could; lines with ! are problems, and the exit status is 1. An arrow says what to do. Run it where the job runs: limits and
processors of a batch job are often others than those of a login shell.

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
