package command

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/alecthomas/kong"
)

// PopText takes the next value of the command line, byte for byte. Kong's PopValueInto passes it
// through JSON, which has no other text than UTF-8: names of files, and arguments of another
// program, may have any byte but zero. what is expected is for people.
func PopText(ctx *kong.DecodeContext, what string) (string, error) {
	token, err := ctx.Scan.PopValue(what)
	return fmt.Sprint(token.Value), err
}

// Names is a list separated by commas as a flag, which may be given several times. Unlike
// kong's, it may have any byte, and an empty one is a fault: it would mean the same as no flag.
type Names []string

// Decode implements kong.MapperValue.
func (l *Names) Decode(ctx *kong.DecodeContext) error {
	TakeNegative(ctx)
	text, err := PopText(ctx, "list")
	if err != nil {
		return err
	}
	items := strings.Split(text, ",")
	for _, item := range items {
		if item == "" {
			return fmt.Errorf("%q lacks a name", text)
		}
	}
	*l = append(*l, items...)
	return nil
}

// anyText makes kong take every text as PopText does.
func anyText() kong.Option {
	return kong.KindMapper(reflect.String, kong.MapperFunc(func(ctx *kong.DecodeContext, target reflect.Value) error {
		text, err := PopText(ctx, "string")
		if err == nil {
			target.SetString(text)
		}
		return err
	}))
}
