package command

import (
	"reflect"
	"strings"

	"github.com/alecthomas/kong"
)

// declarations returns what is declared, for the parser of a command line. If it begins
// with a subcommand, the others are left out: making a parser of them all was a third
// of the time of a short pinwheel get.
func (s *Spec) declarations(args []string) (any, []kong.Option) {
	if len(args) > 0 {
		declared := s.Declarations(args[0])
		if others, found := fieldsBut(args[0], reflect.TypeOf(declared).Elem()); found {
			return declared, []kong.Option{kong.IgnoreFields(others)}
		}
	}
	return s.Declarations(""), nil
}

// fieldsBut returns a pattern, as kong has it, for the fields of all subcommands
// but one, and whether there is that one.
func fieldsBut(name string, declared reflect.Type) (pattern string, found bool) {
	var others []string
	for _, f := range reflect.VisibleFields(declared) {
		_, subcommand := f.Tag.Lookup("cmd")
		switch {
		case subcommand && nameOfField(f) == name:
			found = true
		case subcommand:
			others = append(others, f.Name)
		}
	}
	return `^` + declared.Name() + `\.(` + strings.Join(others, "|") + `)$`, found
}

// nameOfField returns the name of a subcommand, which is a single word.
func nameOfField(f reflect.StructField) string {
	if name := f.Tag.Get("name"); name != "" {
		return name
	}
	return strings.ToLower(f.Name)
}
