package main

import (
	"fmt"
	"strconv"

	"github.com/alecthomas/kong"

	"pinwheel/internal/tools/command"
)

// numbers is a list as command.Names is.
type numbers []int

// Decode implements kong.MapperValue.
func (l *numbers) Decode(ctx *kong.DecodeContext) error {
	var items command.Names
	err := items.Decode(ctx)
	for _, item := range items {
		n, err := strconv.Atoi(item)
		if err != nil {
			return fmt.Errorf("%q is not a number", item)
		}
		*l = append(*l, n)
	}
	return err
}
