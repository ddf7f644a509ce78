package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"pinwheel/internal/command"
)

// names and numbers are lists separated by commas. Unlike kong's, an empty one
// is a fault: it would mean the same as no flag.
type (
	names   []string
	numbers []int
)

func (l *names) Decode(ctx *kong.DecodeContext) error {
	items, err := popList(ctx)
	*l = append(*l, items...)
	return err
}

func (l *numbers) Decode(ctx *kong.DecodeContext) error {
	items, err := popList(ctx)
	for _, item := range items {
		n, err := strconv.Atoi(item)
		if err != nil {
			return fmt.Errorf("%q is not a number", item)
		}
		*l = append(*l, n)
	}
	return err
}

func popList(ctx *kong.DecodeContext) ([]string, error) {
	command.TakeNegative(ctx)
	var text string
	if err := ctx.Scan.PopValueInto("list", &text); err != nil {
		return nil, err
	}
	items := strings.Split(text, ",")
	for _, item := range items {
		if item == "" {
			return nil, fmt.Errorf("%q lacks a name", text)
		}
	}
	return items, nil
}
