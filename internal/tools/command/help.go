package command

type helpCmd struct {
	Command []string `arg:"" optional:"" help:"Command to show the help of."`
}

func (helpCmd) Help() string { return "Example:\n  pinwheel help run" }

func (c *helpCmd) Run(e *Env) error { return e.run(append([]string{"--help"}, c.Command...)) }

type versionCmd struct{}

func (versionCmd) Help() string { return "Example:\n  pinwheel version" }

func (versionCmd) Run(e *Env) error { return e.run([]string{"--version"}) }
