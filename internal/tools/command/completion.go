package command

import (
	"embed"
	"io"
	"strings"
)

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"One of ${enum}."`
}

func (completionCmd) Help() string {
	return `make install puts the output where the shells look for it. For an installation that has none:

Examples:
  source <(pinwheel completion bash)
  nasreplay completion zsh > ~/.zfunc/_nasreplay
  nasreplay completion fish > ~/.config/fish/completions/nasreplay.fish`
}

//go:embed shell
var shells embed.FS

func (c *completionCmd) Run(e *Env) error {
	script, err := shells.ReadFile("shell/complete." + c.Shell)
	if err != nil {
		return err
	}
	_, err = io.WriteString(e.Stdout, strings.ReplaceAll(string(script), "NAME", e.spec.Name))
	return err
}
