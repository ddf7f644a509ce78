package command

import "pinwheel/internal/tools/manpage"

type manCmd struct{}

func (manCmd) Help() string { return "Example:\n  nasreplay man | man -l -" }

func (manCmd) Run(e *Env) error {
	return manpage.Write(e.Stdout, e.spec.Model(), e.spec.Page)
}
