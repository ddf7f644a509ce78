// Package manpage writes the manual page of a command from its kong model, in
// the macros of man(7), so that page and --help can't differ.
package manpage

import (
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/alecthomas/kong"

	"pinwheel/internal/settings"
)

// Page is what a model does not have.
type Page struct {
	ExitStatus [][2]string // status and meaning
	// Environment are variables and their meaning. nil: all settings.
	Environment [][2]string
	Files       [][2]string // file and meaning
	SeeAlso     []string
}

// Write writes the page. The same model gives the same bytes.
func Write(w io.Writer, app *kong.Application, p Page) error {
	var b strings.Builder
	fmt.Fprintf(&b, ".\\\" Made from the command's declarations; do not edit.\n.TH %s 1\n", strings.ToUpper(app.Name))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", app.Name, text(lowerFirst(strings.TrimSuffix(app.Help, "."))))
	b.WriteString(".SH SYNOPSIS\n")
	for i, c := range commands(app.Node) {
		if i > 0 {
			b.WriteString(".br\n")
		}
		fmt.Fprintf(&b, ".B %s %s\n%s\n", app.Name, c.Path(), text(arguments(c)))
	}
	b.WriteString(".SH COMMANDS\n")
	for _, c := range commands(app.Node) {
		fmt.Fprintf(&b, ".SS %s %s\n%s\n", app.Name, c.Path(), text(c.Help))
		prose, examples := parts(c.Detail)
		if prose != "" {
			fmt.Fprintf(&b, ".PP\n%s\n", text(prose))
		}
		flags(&b, c)
		if examples != "" {
			fmt.Fprintf(&b, ".PP\nExamples:\n.PP\n.RS\n.nf\n%s\n.fi\n.RE\n",
				text(strings.TrimRight(strings.ReplaceAll("\n"+examples, "\n  ", "\n")[1:], "\n")))
		}
	}
	if p.Environment != nil {
		pairs(&b, "ENVIRONMENT", p.Environment)
	} else {
		environment(&b)
	}
	pairs(&b, "EXIT STATUS", p.ExitStatus)
	if p.Files != nil {
		pairs(&b, "FILES", p.Files)
	}
	fmt.Fprintf(&b, ".SH SEE ALSO\n%s\n", text(strings.Join(p.SeeAlso, ", ")))
	_, err := io.WriteString(w, b.String())
	return err
}

// environment lists every setting.
func environment(b *strings.Builder) {
	b.WriteString(".SH ENVIRONMENT\nAn empty value counts as not set. Sizes are written 4K, 16M, 2G.\n")
	for _, v := range settings.Variables() {
		fmt.Fprintf(b, ".TP\n.BR %s \" (%s)\"\n%s\n", v.Name, text(strings.ReplaceAll(v.Syntax, "|", ", ")), text(v.Doc))
		if v.Default != "" {
			fmt.Fprintf(b, "Default: %s.\n", text(v.Default))
		}
	}
}

// commands returns those that --help lists, and instead of one that has commands of its own, these.
func commands(n *kong.Node) (list []*kong.Node) {
	for _, c := range n.Children {
		switch {
		case c.Hidden:
		case len(c.Children) > 0:
			list = append(list, commands(c)...)
		default:
			list = append(list, c)
		}
	}
	return list
}

// parts returns what a command says of itself, and its examples.
func parts(detail string) (prose, examples string) {
	if at := exampleTitle.FindStringIndex(detail); at != nil {
		return strings.TrimSpace(detail[:at[0]]), detail[at[1]:]
	}
	return detail, ""
}

var exampleTitle = regexp.MustCompile(`(?m)^Examples?:\n`)

func arguments(c *kong.Node) string {
	words := []string{"[options]"}
	for _, a := range c.Positional {
		form := a.Name
		if a.IsCumulative() {
			form += " ..."
		}
		if a.Passthrough {
			words = append(words, "--")
		}
		if !a.Required {
			form = "[" + form + "]"
		}
		words = append(words, form)
	}
	return strings.Join(words, " ")
}

// flags lists the options of a command; those that stand for a setting only by name.
func flags(b *strings.Builder, c *kong.Node) {
	var forSettings []string
	for _, f := range c.Flags {
		switch {
		case f.Hidden:
		case f.Group != nil:
			forSettings = append(forSettings, "--"+f.Name)
		default:
			name := "--" + f.Name
			if f.Short != 0 {
				name = fmt.Sprintf("-%c, %s", f.Short, name)
			}
			if f.Tag.Negatable != "" {
				name = "--[no-]" + f.Name
			}
			value := ""
			if !f.IsBool() {
				value = "=" + f.FormatPlaceHolder()
			}
			fmt.Fprintf(b, ".TP\n.B %s%s\n%s\n", text(name), text(value), text(f.Help))
		}
	}
	if len(forSettings) > 0 {
		fmt.Fprintf(b, ".TP\n.B %s\nFor the variable of the same name; see ENVIRONMENT.\n",
			text(strings.Join(forSettings, ", ")))
	}
}

func pairs(b *strings.Builder, title string, list [][2]string) {
	fmt.Fprintf(b, ".SH %s\n", title)
	for _, p := range list {
		fmt.Fprintf(b, ".TP\n.B %s\n%s\n", text(p[0]), text(p[1]))
	}
}

// text makes plain text safe for roff: nothing in it is a request or an escape,
// and options can be copied from the page.
func text(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(s)
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, ".") || strings.HasPrefix(l, "'") {
			lines[i] = `\&` + l
		}
	}
	return strings.Join(lines, "\n")
}

func lowerFirst(s string) string {
	if s == "" {
		return s
	}
	return strings.ToLower(s[:1]) + s[1:]
}
