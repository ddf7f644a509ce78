package command

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// What a shell knows better, as lines of their own.
const (
	files    = ":files"
	commands = ":commands"
)

type completeCmd struct {
	Words []string `arg:"" optional:"" help:"Words of the command line after the command, up to the one to complete."`
}

func (completeCmd) Help() string { return "Example:\n  nasreplay complete -- compare --pol" }

func (c *completeCmd) Run(e *Env) error {
	words := c.Words
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	if len(words) == 0 {
		words = []string{""}
	}
	for _, line := range e.spec.complete(words) {
		fmt.Fprintln(e.Stdout, line)
	}
	return nil
}

// complete returns what the last of the words may become, each as a word of
// the shell's, and what the shell is to look for itself.
func (s *Spec) complete(words []string) []string {
	words, split := joinValues(words)
	last := words[len(words)-1]
	at := place{node: s.Model().Node}
	for _, w := range words[:len(words)-1] {
		at.pass(w)
	}
	name, value, hasValue := strings.Cut(last, "=")
	switch {
	case at.flag != nil:
		return s.values(at.flag, "", last)
	case at.literal || !strings.HasPrefix(last, "-"):
		return at.arguments(last)
	case !hasValue:
		return matching(at.flags(), "", last)
	case split:
		return s.values(at.find(name), "", value)
	}
	return s.values(at.find(name), name+"=", value)
}

// joinValues puts --flag=value together again, which bash makes three words of.
// split reports whether the last word was one of those.
func joinValues(words []string) (joined []string, split bool) {
	for i := 0; i < len(words); i++ {
		split = words[i] == "=" && i > 0 && strings.HasPrefix(words[i-1], "--")
		if !split {
			joined = append(joined, words[i])
			continue
		}
		value := ""
		if i+1 < len(words) {
			i++
			value = words[i]
		}
		joined[len(joined)-1] += "=" + value
	}
	return joined, split
}

// place is where in the grammar a word stands.
type place struct {
	node    *kong.Node
	flag    *kong.Flag // whose value it is
	literal bool       // what begins with - is no flag any more
	args    int        // arguments before it
}

// pass goes past a word.
func (p *place) pass(w string) {
	switch {
	case p.flag != nil:
		p.flag = nil
	case w == "--" && !p.literal:
		p.literal = true
	case strings.HasPrefix(w, "-") && !p.literal:
		if f := p.find(w); f != nil && !f.IsBool() { // which --flag=value isn't
			p.flag = f
		}
	default:
		for _, c := range p.node.Children {
			if c.Name == w {
				p.node = c
				return
			}
		}
		p.args++
		p.literal = p.literal || p.runs()
	}
}

// runs reports whether the arguments are the command line of another program.
func (p *place) runs() bool {
	return len(p.node.Positional) == 1 && p.node.Positional[0].Passthrough
}

func (p *place) find(word string) *kong.Flag {
	for _, group := range p.node.AllFlags(true) {
		for _, f := range group {
			if word == "--"+f.Name || f.Short != 0 && word == "-"+string(f.Short) {
				return f
			}
		}
	}
	return nil
}

func (p *place) flags() (names []string) {
	for _, group := range p.node.AllFlags(true) {
		for _, f := range group {
			names = append(names, "--"+f.Name)
			if f.Tag.Negatable != "" {
				names = append(names, "--no-"+f.Name)
			}
		}
	}
	return names
}

// arguments returns what may stand where no flag is.
func (p *place) arguments(word string) (names []string) {
	for _, c := range p.node.Children {
		if !c.Hidden {
			names = append(names, c.Name)
		}
	}
	switch args := p.node.Positional; {
	case len(args) == 0:
		return matching(names, "", word)
	case p.runs() && p.args == 0:
		return []string{commands, files}
	case args[0].Enum != "":
		return matching(args[0].EnumSlice(), "", word)
	}
	return []string{files}
}

// choice matches a value in the syntax of a flag that stands for itself, as
// auto in auto|SIZE.
var choice = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)

// values returns what a flag may be, each after prefix.
func (s *Spec) values(f *kong.Flag, prefix, word string) []string {
	if f == nil {
		return nil
	}
	if all := s.Choices[f.Name]; all != nil {
		i := strings.LastIndex(word, ",") + 1 // they are lists
		return matching(all, prefix+word[:i], word[i:])
	}
	if f.Enum != "" {
		return matching(f.EnumSlice(), prefix, word)
	}
	var names []string
	for _, form := range strings.Split(f.PlaceHolder, "|") {
		switch {
		case choice.MatchString(form):
			names = append(names, form)
		case strings.Contains(form, "FILE") || strings.Contains(form, "DIR"):
			names = append(names, files)
		}
	}
	if slices.Contains(names, files) && prefix != "" { // the shell would look for files of that name
		names = slices.DeleteFunc(names, func(n string) bool { return n == files })
	}
	return matching(names, prefix, word)
}

// matching returns those that begin with word, after prefix, and what the shell is to look for.
func matching(names []string, prefix, word string) (found []string) {
	for _, n := range names {
		switch {
		case n == files:
			found = append(found, n)
		case strings.HasPrefix(n, word):
			found = append(found, prefix+n)
		}
	}
	return found
}
