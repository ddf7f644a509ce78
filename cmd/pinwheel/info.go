package main

import (
	"os"

	"pinwheel/internal/settings"
	"pinwheel/internal/tools/command"
	"pinwheel/internal/tools/doctor"
)

type infoCmd struct {
	Config bool `short:"c" help:"List the settings in force, as NAME=value."`
	Full   bool `short:"f" help:"With -c: also show the meaning, the values, the default and the source of each."`
}

func (infoCmd) Help() string {
	return `Without options, info shows the version, the providers that work here, the mechanism that notices changed mappings, and the processors that a rank may use.

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
