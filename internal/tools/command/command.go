package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"

	"github.com/alecthomas/kong"
	"golang.org/x/term"

	"pinwheel/internal/outfile"
	"pinwheel/internal/tools/manpage"
	"pinwheel/internal/version"
)

// Exit status of every command.
const (
	Failed = 1
	Usage  = 2 // wrong arguments
)

// Spec describes a command: its name, flags and subcommands, and its manual page.
type Spec struct {
	Name        string
	Description string // one sentence
	// Declarations returns a pointer to the struct of flags and subcommands, for
	// kong, with Common in it; every call another one. It is told the subcommand
	// that is to be parsed, and needs to fill in no other; "" for all of them.
	Declarations func(subcommand string) any
	Options      []kong.Option
	Page         manpage.Page
	// Choices are the values of flags that have no enum of their own, for completion, by the flag's name.
	Choices map[string][]string
}

// Common are the flags and subcommands of every command.
type Common struct {
	Completion   completionCmd    `cmd:"" help:"Print the completion script for a shell: bash, zsh or fish."`
	Complete     completeCmd      `cmd:"" hidden:"" passthrough:"" help:"Print the possible next words, for a completion script."`
	Man          manCmd           `cmd:"" hidden:"" help:"Print the manual page."`
	Help         helpCmd          `cmd:"" hidden:"" help:"Show the help of a command, as --help does."`
	PrintVersion versionCmd       `cmd:"" name:"version" hidden:"" help:"Print the version, as --version does."`
	Version      kong.VersionFlag `help:"Print the version and exit."`
}

// Main is the main function of a command.
func Main(s Spec) {
	outfile.RemoveOnSignals()
	os.Exit(Run(s, os.Args[1:], os.Stdout, os.Stderr))
}

// Run runs the command and returns its exit status.
func Run(s Spec, args []string, stdout, stderr io.Writer) int {
	out := &output{w: stdout}
	e := &Env{Stdout: out, Stderr: stderr, out: out, spec: &s}
	if f, ok := stderr.(*os.File); ok {
		e.Terminal = term.IsTerminal(int(f.Fd()))
	}
	err := e.run(args)
	if out.err != nil { // whether the subcommand has looked at it or not
		e.status = max(e.status, Failed)
		e.Note("%v", out.err)
	} else if err != nil {
		e.Complain(err)
	}
	return e.status
}

func (e *Env) run(args []string) error {
	exited := false
	parser := e.spec.parser(args, kong.Writers(e.Stdout, e.Stderr), kong.Exit(func(int) { exited = true }))
	k, err := parser.Parse(args)
	if exited { // --help or --version
		return nil
	}
	if err == nil {
		err = check(k)
	}
	if fault := (*kong.ParseError)(nil); errors.As(err, &fault) {
		k = fault.Context
	}
	if err != nil {
		return Usagef("%w (see %s --help)", err, nameOf(k))
	}
	return k.Run(e)
}

// nameOf returns what the user would type for the subcommand that the arguments are for.
func nameOf(k *kong.Context) string {
	name := k.Model.Name
	for _, p := range k.Path {
		if p.Command != nil {
			name += " " + p.Command.Name
		}
	}
	return name
}

// Model is what is declared, as kong understands it.
func (s *Spec) Model() *kong.Application { return s.parser(nil).Model }

// parser returns the parser of a command line; without one, that of all subcommands.
func (s *Spec) parser(args []string, options ...kong.Option) *kong.Kong {
	declared, only := s.declarations(args)
	all := []kong.Option{
		kong.Name(s.Name),
		kong.Description(s.Description),
		kong.Vars{"version": s.Name + " " + version.String()},
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
		anyText(),
	}
	parser, err := kong.New(declared, slices.Concat(all, only, negativeNumbers(), s.Options, options)...)
	if err != nil {
		panic(err) // the declarations are wrong
	}
	return parser
}

// check complains of what no subcommand has to look at: a flag that was given
// twice and has room for one value, and values that are empty, as those of a
// shell's variable that is not set.
func check(k *kong.Context) error {
	given := map[*kong.Flag]bool{}
	for _, p := range k.Path {
		switch f := p.Flag; {
		case p.Positional != nil && !p.Positional.Passthrough && !k.Selected().Passthrough && isEmpty(p.Positional.Target):
			return fmt.Errorf("<%s> is empty", p.Positional.Name)
		case f == nil:
			continue
		case isEmpty(f.Target):
			return fmt.Errorf("--%s is empty", f.Name)
		case given[f] && !f.IsBool() && f.Target.Kind() != reflect.Slice:
			return fmt.Errorf("--%s is given twice", f.Name)
		}
		given[p.Flag] = true
	}
	return nil
}

// isEmpty reports whether a value is an empty text, or has one.
func isEmpty(v reflect.Value) bool {
	texts, list := v.Interface().([]string)
	return v.Kind() == reflect.String && v.Len() == 0 || list && slices.Contains(texts, "")
}

// statusError ends the command with a certain status.
type statusError struct {
	error
	status int
}

func (e statusError) Unwrap() error { return e.error }

// WithStatus makes an error one that ends the command with this status.
func WithStatus(err error, status int) error { return statusError{err, status} }

// Usagef makes a fault of the arguments that kong can't see.
func Usagef(format string, args ...any) error { return AsUsage(fmt.Errorf(format, args...)) }

// AsUsage makes an error one of the arguments. nil stays nil.
func AsUsage(err error) error {
	if err == nil {
		return nil
	}
	return WithStatus(err, Usage)
}

// statusOf returns the exit status for an error.
func statusOf(err error) int {
	if with := (statusError{}); errors.As(err, &with) {
		return with.status
	}
	return Failed
}
