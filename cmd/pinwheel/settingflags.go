package main

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"pinwheel/internal/settings"
	"pinwheel/internal/tools/command"
)

const settingsGroup = "settings"

// value is a setting given as an option; "" if it was not given.
type value string

// Decode implements kong.MapperValue.
func (v *value) Decode(ctx *kong.DecodeContext) error {
	command.TakeNegative(ctx)
	text, err := command.PopText(ctx, "value")
	*v = value(text)
	return err
}

// toggle is a setting that may be given without a value, which means y.
type toggle string

// Decode implements kong.MapperValue.
func (t *toggle) Decode(ctx *kong.DecodeContext) error {
	*t = "y"
	if next := ctx.Scan.Peek(); next.Type == kong.FlagValueToken {
		*t = toggle(fmt.Sprint(ctx.Scan.Pop().Value))
	}
	return nil
}

// IsBool implements kong.BoolMapperValue: an argument after it is another one.
func (t *toggle) IsBool() bool { return true }

// settingFlags declares an option for every setting but those named. given
// returns NAME=value of those that were given, or a usage error.
func settingFlags(but ...string) (plugins kong.Plugins, given func() ([]string, error)) {
	var fields []reflect.StructField
	var vars []settings.Variable
	for i, v := range settings.Variables() {
		if slices.Contains(but, v.Option) {
			continue
		}
		typ, syntax := reflect.TypeFor[value](), v.Syntax
		if v.Switch() {
			typ, syntax = reflect.TypeFor[toggle](), strings.TrimPrefix(v.Syntax, "y|n|")
		}
		help := v.Doc
		if v.Default != "" {
			help += " Default: " + v.Default + "."
		}
		vars = append(vars, v)
		fields = append(fields, reflect.StructField{
			Name: fmt.Sprintf("Setting%d", i),
			Type: typ,
			Tag:  reflect.StructTag(fmt.Sprintf("name:%q group:%q placeholder:%q help:%q", v.Option, settingsGroup, syntax, help)),
		})
	}
	options := reflect.New(reflect.StructOf(fields))
	return kong.Plugins{options.Interface()}, func() ([]string, error) {
		var list []string
		for i, v := range vars {
			value := options.Elem().Field(i).String()
			if value == "" {
				continue
			}
			if err := settings.Check(v.Name, value); err != nil {
				return nil, command.Usagef("--%s: %v", v.Option, err)
			}
			list = append(list, v.Name+"="+value)
		}
		return list, nil
	}
}
