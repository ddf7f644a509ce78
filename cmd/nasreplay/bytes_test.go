package main

import (
	"testing"

	"pinwheel/internal/tools/command/argstest"
)

func TestArgumentsKeepTheirBytes(t *testing.T) { argstest.KeepBytes(t, spec()) }
