package command

import (
	"fmt"
	"reflect"
	"regexp"
	"time"

	"github.com/alecthomas/kong"

	"pinwheel/mem"
)

var (
	negativeNumber = regexp.MustCompile(`^-[0-9.]`)
	bareNumber     = regexp.MustCompile(`^[-+]?[0-9.]+$`)
)

// TakeNegative makes the next argument, if it looks like a negative number,
// the value of the flag that is being decoded, as in --top -1. Kong takes it for
// a flag of its own. It is for types that decode themselves.
func TakeNegative(ctx *kong.DecodeContext) {
	next := ctx.Scan.Peek()
	if text, ok := next.Value.(string); ok && next.Type == kong.UntypedToken && negativeNumber.MatchString(text) {
		ctx.Scan.Pop()
		ctx.Scan.PushTyped(text, kong.FlagValueToken)
	}
}

// Size is a byte count as a flag: 16K, 64M, inf.
type Size int64

// Decode implements kong.MapperValue.
func (s *Size) Decode(ctx *kong.DecodeContext) error {
	TakeNegative(ctx)
	text, err := PopText(ctx, "size")
	if err != nil {
		return err
	}
	n, err := mem.ParseBytes(text)
	*s = Size(n)
	return err
}

// decodeSeconds decodes a time.Duration of type:"seconds", where a number without a unit is that many of them.
func decodeSeconds(ctx *kong.DecodeContext, target reflect.Value) error {
	TakeNegative(ctx)
	text, err := PopText(ctx, "time")
	if err != nil {
		return err
	}
	unit := ""
	if bareNumber.MatchString(text) {
		unit = "s"
	}
	d, err := time.ParseDuration(text + unit)
	if err != nil {
		return fmt.Errorf("%q is no time: write 30s, 10m, or a number of seconds", text)
	}
	target.SetInt(int64(d))
	return nil
}

// mapper is a type of kong's that may be negative.
type mapper struct{ kong.Mapper }

func (m mapper) Decode(ctx *kong.DecodeContext, target reflect.Value) error {
	TakeNegative(ctx)
	return m.Mapper.Decode(ctx, target)
}

// negativeNumbers makes kong take them for values, to be refused by who knows why.
func negativeNumbers() []kong.Option {
	kinds := kong.NewRegistry().RegisterDefaults()
	own := func(t reflect.Type) kong.Mapper { return mapper{kinds.ForType(t)} }
	return []kong.Option{
		kong.TypeMapper(reflect.TypeFor[time.Duration](), own(reflect.TypeFor[time.Duration]())),
		kong.NamedMapper("seconds", kong.MapperFunc(decodeSeconds)),
		kong.KindMapper(reflect.Int, own(reflect.TypeFor[int]())),
		kong.KindMapper(reflect.Float64, own(reflect.TypeFor[float64]())),
	}
}
