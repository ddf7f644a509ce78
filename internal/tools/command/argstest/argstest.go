// Package argstest checks what the command lines of commands take.
package argstest

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"pinwheel/internal/tools/command"
)

// Bytes are all that an argument may have, in one text.
func Bytes() string {
	var b strings.Builder
	for c := 1; c < 256; c++ {
		b.WriteByte(byte(c))
	}
	return b.String()
}

// KeepBytes checks that every flag and argument of a command that is a text keeps all bytes
// as they were typed.
func KeepBytes(t testing.TB, s command.Spec) {
	t.Helper()
	texts := 0
	for _, node := range s.Model().Leaves(false) {
		values := slices.Clone(node.Positional)
		for _, f := range node.Flags {
			values = append(values, f.Value)
		}
		for _, v := range values {
			typ := v.Target.Type()
			if kind := elem(typ).Kind(); kind != reflect.String || v.Enum != "" {
				continue
			}
			texts++
			want := Bytes()
			if typ.Kind() == reflect.Slice && v.Flag != nil && v.Tag.Sep != -1 {
				want = strings.ReplaceAll(want, string(v.Tag.Sep), "")
			}
			got := reflect.New(typ).Elem()
			err := v.Parse(kong.ScanAsType(kong.FlagValueToken, want), got)
			for got.Kind() == reflect.Pointer || got.Kind() == reflect.Slice && got.Len() == 1 {
				if got.Kind() == reflect.Pointer {
					got = got.Elem()
				} else {
					got = got.Index(0)
				}
			}
			if err != nil || got.Kind() != reflect.String || got.String() != want {
				t.Errorf("%s %s: %q, %v", node.FullPath(), v.Summary(), got, err)
			}
		}
	}
	if texts == 0 {
		t.Error("no flag or argument is a text")
	}
}

func elem(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		return t.Elem()
	}
	return t
}
