package main

import (
	"os"

	"pinwheel/internal/command"
	"pinwheel/internal/doctor"
	"pinwheel/internal/settings"
)

type infoCmd struct {
	Config bool `short:"c" help:"List the settings that are in force, as NAME=value."`
	Full   bool `short:"f" help:"With -c: and what each means, its values, its default, and where it comes from."`
}

func (infoCmd) Help() string {
	return `Without options: the version, what can register memory here, and how changes of memory mappings are noticed.

Examples:
  pinwheel info
  pinwheel info -c
  pinwheel info -cf > settings.sh`
}

func (c *infoCmd) Run(e *command.Env) error {
	if c.Full && !c.Config {
		return command.Usagef("-f goes with -c")
	}
	if c.Config {
		_, warnings := settings.FromEnvironment()
		for _, w := range warnings {
			e.Note("%s", w)
		}
		return settings.WriteList(e.Stdout, os.Environ(), c.Full)
	}
	return doctor.Abilities(doctor.This("")).WriteFindings(e.Stdout)
}
